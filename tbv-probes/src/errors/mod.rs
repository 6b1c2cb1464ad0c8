//! Mistakes made on purpose.
