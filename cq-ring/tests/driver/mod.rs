//! `kmod/tests/ring_driver.c`, compiled and loaded.

use std::{
    ffi::{CStr, CString, c_void},
    path::{Path, PathBuf},
    process::{Command, id},
    ptr::{NonNull, null_mut},
    sync::LazyLock,
};

use tbv_cq_ring::{Consumer, Entry, Mapped};

const ROOT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/..");

/// Declares the functions of the driver, and finds them.
macro_rules! functions {
    ($($name:ident($($argument:ty),*) $(-> $result:ty)?;)*) => {
        struct Functions {
            $($name: unsafe extern "C" fn($($argument),*) $(-> $result)?,)*
        }

        impl Functions {
            /// # Safety
            /// The library has these functions, of these types.
            unsafe fn find(library: *mut c_void) -> Self {
                Functions {
                    $($name: {
                        // SAFETY: as promised.
                        let symbol = unsafe { symbol(library, concat!(stringify!($name), "\0")) };
                        // SAFETY: as promised.
                        unsafe {
                            std::mem::transmute::<*mut c_void, unsafe extern "C" fn($($argument),*) $(-> $result)?>(
                                symbol,
                            )
                        }
                    },)*
                }
            }
        }
    };
}

functions! {
    ring_new(u32, u64) -> *mut c_void;
    ring_shm(*mut c_void) -> *mut c_void;
    ring_consumer(*mut c_void) -> *mut c_void;
    ring_produced(*mut c_void) -> u64;
    ring_consumed(*mut c_void) -> u64;
    ring_push(*mut c_void, *const Entry) -> bool;
    ring_overflow(*mut c_void);
    ring_take(*mut c_void, u64, u64) -> bool;
    ring_die(*mut c_void);
    ring_is_whole(*mut c_void) -> bool;
}

static C: LazyLock<Functions> = LazyLock::new(|| {
    let library = load(&compile());
    // SAFETY: ring_driver.c has them.
    unsafe { Functions::find(library) }
});

fn compile() -> PathBuf {
    // One a process: tests may run in several.
    let library = Path::new(env!("CARGO_TARGET_TMPDIR")).join(format!("ring_driver.{}.so", id()));
    let output = Command::new(std::env::var("CC").unwrap_or_else(|_| "cc".into()))
        .args(["-O2", "-shared", "-fPIC", "-Wall", "-Wextra", "-Werror", "-Iproto", "-o"])
        .arg(&library)
        .args(["kmod/tests/ring_driver.c", "kmod/cq_ring.c"])
        .current_dir(ROOT)
        .output()
        .expect("cannot start the C compiler: install gcc or set CC");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    library
}

fn load(library: &Path) -> *mut c_void {
    let name = CString::new(library.to_str().unwrap()).unwrap();
    // SAFETY: a C string goes in; the library runs nothing when it is loaded.
    let handle = unsafe { libc::dlopen(name.as_ptr(), libc::RTLD_NOW) };
    std::fs::remove_file(library).unwrap();
    assert!(!handle.is_null(), "cannot load {}", library.display());
    handle
}

/// # Safety
/// `library` is loaded.
unsafe fn symbol(library: *mut c_void, name: &str) -> *mut c_void {
    let name = CStr::from_bytes_with_nul(name.as_bytes()).unwrap();
    // SAFETY: the library is loaded, and the name ends in zero.
    let symbol = unsafe { libc::dlsym(library, name.as_ptr()) };
    assert_ne!(symbol, null_mut(), "no function {name:?}");
    symbol
}

/// The kernel's half of a queue. Who has it holds the queue's lock.
pub(crate) struct Kernel {
    driver: *mut c_void,
    /// Where the totals began.
    first: u64,
    /// First words of all completions: the kernel reads its own copies.
    pushed: Vec<u64>,
}

// SAFETY: the driver belongs to no thread, and is called by one at a time.
unsafe impl Send for Kernel {}

impl Kernel {
    /// A queue and its consumer. Its memory is never freed.
    pub(crate) fn new(cqe: u32, first: u64) -> (Kernel, Consumer<Mapped>) {
        // SAFETY: it takes any capacity, and returns a driver.
        let driver = unsafe { (C.ring_new)(cqe, first) };
        // SAFETY: the driver has just been made.
        let (shm, page) = unsafe { ((C.ring_shm)(driver), (C.ring_consumer)(driver)) };
        let (shm, page) = (NonNull::new(shm).unwrap(), NonNull::new(page).unwrap());
        // SAFETY: they are what their names say, for ever.
        let mapped = unsafe { Mapped::new(shm.cast(), page.cast(), cqe) };
        (Kernel { driver, first, pushed: Vec::new() }, Consumer::new(mapped))
    }

    /// Whether there was room.
    pub(crate) fn push(&mut self, entry: &Entry) -> bool {
        // SAFETY: the driver lives, and is called by nobody else.
        let done = unsafe { (C.ring_push)(self.driver, entry) };
        if done {
            self.pushed.push(entry[0]);
        }
        done
    }

    pub(crate) fn overflow(&mut self) {
        // SAFETY: as in push().
        unsafe { (C.ring_overflow)(self.driver) }
    }

    pub(crate) fn die(&mut self) {
        // SAFETY: as in push().
        unsafe { (C.ring_die)(self.driver) }
    }

    /// Takes these; whether they had not been taken.
    pub(crate) fn take(&mut self, from: u64, to: u64) -> bool {
        // SAFETY: as in push().
        unsafe { (C.ring_take)(self.driver, from, to) }
    }

    /// Takes up to `room` as a poll by system call does, in one try; how many there were to take.
    pub(crate) fn poll(&mut self, room: u64, taken: &mut Vec<u64>) -> u64 {
        let from = self.consumed();
        let n = self.produced().wrapping_sub(from).min(room);
        let at = from.wrapping_sub(self.first) as usize;
        // SAFETY: as in push().
        if n > 0 && unsafe { (C.ring_take)(self.driver, from, from.wrapping_add(n)) } {
            taken.extend(&self.pushed[at..at + n as usize]);
        }
        n
    }

    pub(crate) fn produced(&self) -> u64 {
        // SAFETY: as in push().
        unsafe { (C.ring_produced)(self.driver) }
    }

    pub(crate) fn consumed(&self) -> u64 {
        // SAFETY: as in push(): who shares it has the lock.
        unsafe { (C.ring_consumed)(self.driver) }
    }

    /// Whether nothing was written around the ring.
    pub(crate) fn is_whole(&self) -> bool {
        // SAFETY: as in push().
        unsafe { (C.ring_is_whole)(self.driver) }
    }
}
