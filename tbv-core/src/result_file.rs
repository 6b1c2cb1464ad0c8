//! Files that results go to.

use std::{
    fs::{self, File, Metadata, TryLockError},
    io::{self, Write},
    os::unix::fs::MetadataExt as _,
    path::{Path, PathBuf},
};

/// A file that is to be written to. It keeps what it held until there is something new.
pub struct ResultFile {
    file: File,
    path: PathBuf,
    /// Whether it is there only because of us.
    ours: bool,
    /// Whether anything was written.
    begun: bool,
}

impl ResultFile {
    /// Before anything is traced, so that a file that cannot be written costs no run.
    pub fn open(path: &Path) -> io::Result<Self> {
        match Self::create_new(path) {
            Err(e) if e.kind() == io::ErrorKind::AlreadyExists => {
                // Also through a symbolic link that leads nowhere yet.
                let file = File::options().write(true).create(true).truncate(false).open(path)?;
                Self::alone(ResultFile { file, path: path.to_owned(), ours: false, begun: false })
            }
            new => new,
        }
    }

    /// Two that write to one file would make it unreadable.
    fn alone(file: Self) -> io::Result<Self> {
        if file.file.metadata()?.is_file() && matches!(file.file.try_lock(), Err(TryLockError::WouldBlock)) {
            return Err(io::Error::other("another process is writing to it"));
        }
        Ok(file)
    }

    /// Gives up what the file held.
    fn begin(&mut self) -> io::Result<()> {
        // A pipe or a device has no length to set.
        if !self.begun && self.file.metadata()?.is_file() {
            self.file.set_len(0)?;
        }
        self.begun = true;
        Ok(())
    }

    /// One that is not there yet.
    pub fn create_new(path: &Path) -> io::Result<Self> {
        Self::alone(ResultFile {
            file: File::create_new(path)?,
            path: path.to_owned(),
            ours: true,
            begun: false,
        })
    }
}

impl Write for ResultFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.begin()?;
        self.file.write(bytes)
    }

    /// Of no bytes, it empties the file.
    fn write_all(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.begin()?;
        self.file.write_all(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        self.file.flush()
    }
}

impl Drop for ResultFile {
    /// Nothing came: there is no result to be found.
    fn drop(&mut self) {
        if self.ours && !self.begun {
            // Someone else may have removed it.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Whether these are names of one file; `-` is what standard input comes from.
pub fn is_same_file(a: &Path, b: &Path) -> bool {
    let identity = |path: &Path| {
        let path = if path == Path::new("-") { Path::new("/dev/stdin") } else { path };
        fs::metadata(path).ok().filter(Metadata::is_file).map(|of| (of.dev(), of.ino()))
    };
    a == b || identity(a).is_some_and(|of| Some(of) == identity(b))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_keeps_what_it_held_until_something_new_comes() {
        let path = std::env::temp_dir().join(format!("tbv-result-{}", std::process::id()));
        drop(ResultFile::open(&path).unwrap());
        assert!(!path.exists());
        fs::write(&path, "old").unwrap();
        drop(ResultFile::open(&path).unwrap());
        assert_eq!(fs::read_to_string(&path).unwrap(), "old");
        assert!(ResultFile::create_new(&path).is_err());
        let mut file = ResultFile::open(&path).unwrap();
        assert!(ResultFile::open(&path).err().unwrap().to_string().contains("another process"));
        file.write_all(b"n").unwrap();
        file.write_all(b"ew").unwrap();
        drop(file);
        assert_eq!(fs::read_to_string(&path).unwrap(), "new");
        ResultFile::open(&path).unwrap().write_all(b"").unwrap();
        assert_eq!(fs::read_to_string(&path).unwrap(), "");
        fs::remove_file(&path).unwrap();
    }

    #[test]
    fn one_file_may_have_several_names() {
        let folder = std::env::temp_dir().join(format!("tbv-same-{}", std::process::id()));
        fs::create_dir_all(&folder).unwrap();
        let [a, link, other, gone] = ["a", "link", "other", "gone"].map(|name| folder.join(name));
        fs::write(&a, "").unwrap();
        fs::write(&other, "").unwrap();
        fs::hard_link(&a, &link).unwrap();
        assert!(is_same_file(&a, &link) && is_same_file(&gone, &gone));
        assert!(!is_same_file(&a, &other) && !is_same_file(&a, &gone));
        // That of the test is no file.
        assert!(!is_same_file(&a, Path::new("-")));
        // Nothing of a device is lost.
        assert!(!is_same_file(Path::new("/dev/null"), Path::new("/dev/zero")));
        fs::remove_dir_all(&folder).unwrap();
    }
}
