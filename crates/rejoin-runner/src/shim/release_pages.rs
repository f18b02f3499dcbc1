//! Releases the code pages that only the start needed: a shim waits for most of its life, and there
//! may be hundreds. The only file with `unsafe` code.
#![expect(unsafe_code, reason = "no safe function gives pages back")]

use std::ffi::c_void;
use std::ptr::NonNull;

use nix::sys::mman::{MmapAdvise, madvise};

/// Releases the code pages of the program and of its libraries. Pages that are needed again are
/// loaded at their next use: they stay in the page cache.
pub(super) fn trim() {
    let maps = fs_err::read_to_string("/proc/self/maps").unwrap_or_default();
    for code in maps.lines().filter_map(Code::of) {
        let Some(start) = NonNull::new(std::ptr::without_provenance_mut::<c_void>(code.start))
        else {
            continue;
        };
        // SAFETY: according to the kernel, these pages are ours, are mapped from a file and are not
        // writable. They hold the same bytes as the file, because nothing is relocated in code nor in the
        // part before it. After the call they are read from the file again at the next access. This code
        // makes no reference into them.
        let _as_before = unsafe { madvise(start, code.length, MmapAdvise::MADV_DONTNEED) };
    }
}

/// Mapping whose pages can be released.
#[derive(Debug, PartialEq, Eq)]
struct Code {
    start: usize,
    length: usize,
}

impl Code {
    /// Parses a line of `/proc/self/maps`. Returns None if the mapping holds something else, or
    /// bytes that may have been written.
    fn of(line: &str) -> Option<Self> {
        let mut words = line.split_ascii_whitespace();
        let (start, end) = words.next()?.split_once('-')?;
        let address = |text| usize::from_str_radix(text, 16).ok();
        let (start, end) = (address(start)?, address(end)?);
        // A mapping without a file, or whose file was removed, may have been made by writing to it.
        let of_nothing = |path: &str| !path.starts_with('/') || path.starts_with("/dev/");
        let (rights, offset) = (words.next()?, words.next()?);
        // The first mapping of a program tells the loader how to relocate the rest, and is itself
        // never written.
        let beginning = rights == "r--p" && offset.bytes().all(|digit| digit == b'0');
        let from_a_file = (rights == "r-xp" || beginning)
            && !of_nothing(words.nth(2)?)
            && !line.trim_end().ends_with("(deleted)");
        let length = end.checked_sub(start).filter(|_| from_a_file)?;
        Some(Self { start, length })
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn only_code_of_files() {
        let maps = "\
55d0c0a00000-55d0c0a10000 r--p 00000000 fe:00 123  /opt/a program
55d0c0a10000-55d0c0a30000 r-xp 00010000 fe:00 123  /opt/a program
55d0c0a2f000-55d0c0a30000 r--p 0002f000 fe:00 123  /opt/a program
55d0c0a30000-55d0c0a40000 rw-p 00030000 fe:00 123  /opt/a program
7f0000000000-7f0000001000 rwxp 00000000 00:00 0
7f0000001000-7f0000002000 r-xp 00000000 00:00 0
7f0000002000-7f0000003000 r-xs 00000000 fe:00 9  /opt/shared
7f0000003000-7f0000004000 r-xp 00000000 00:05 9  /dev/zero (deleted)
7f0000004000-7f0000005000 r-xp 00000000 00:05 9  /memfd:jit (deleted)
7f0000005000-7f0000006000 r-xp 00000000 00:05 9  /dev/zero
7ffd00000000-7ffd00002000 r-xp 00000000 00:00 0  [vdso]
nonsense";
        let at = |start, length| Code { start, length };
        let found: Vec<Code> = maps.lines().filter_map(Code::of).collect();
        assert_eq!(
            found,
            [
                at(0x55d0_c0a0_0000, 0x1_0000),
                at(0x55d0_c0a1_0000, 0x2_0000)
            ]
        );
    }

    /// A running program continues to run, with less memory.
    #[test]
    fn it_goes_on() {
        let mapped = || {
            let status = fs_err::read_to_string("/proc/self/status").unwrap();
            let line = status.lines().find(|l| l.starts_with("RssFile:")).unwrap();
            let number = line.split_ascii_whitespace().nth(1).unwrap();
            number.parse::<u64>().unwrap()
        };
        let before = mapped();
        trim();
        let after = mapped();
        assert!(after < before, "{before} KiB before, {after} after");
        assert_eq!("only_code".split('_').count(), 2);
    }
}
