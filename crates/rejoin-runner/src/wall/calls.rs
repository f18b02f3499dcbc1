//! System calls that reach a process outside and that Landlock does not restrict: a filter
//! (seccomp) refuses them to a run with EPERM.
//!
//! The filter sees the number of a call and its arguments, no memory. The numbers depend on the
//! instruction set by which a process enters the kernel, and a 64-bit process can enter it as a
//! 32-bit one.

use std::io;

use nix::libc::{
    BPF_ABS, BPF_JEQ, BPF_JGE, BPF_JMP, BPF_K, BPF_LD, BPF_RET, BPF_W, EINVAL, ENOSYS, EPERM,
    SECCOMP_RET_ALLOW, SECCOMP_RET_ERRNO,
};
use seccompiler::{Error, sock_filter as Instruction};

/// Offsets of what the filter sees.
const NUMBER: u32 = 0;
const ENTRY: u32 = 4;

/// Results of the filter.
const ALLOW: u32 = SECCOMP_RET_ALLOW;
const REFUSE: u32 = SECCOMP_RET_ERRNO | EPERM as u32;
const UNKNOWN: u32 = SECCOMP_RET_ERRNO | ENOSYS as u32;

/// Requests of `ioctl` that put words into a terminal, as if its user had typed them.
const TIOCSTI: u32 = 0x5412;
const TIOCLINUX: u32 = 0x541c;

/// First number of the calls of x32, a third instruction set with the entry of x86-64.
const X32: u32 = 0x4000_0000;

/// Numbers of the filtered calls at one entry into the kernel.
struct Entry {
    /// `AUDIT_ARCH_…` of the kernel.
    id: u32,
    prlimit64: u32,
    sched_setattr: u32,
    ioctl: u32,
    /// Numbers from this one on belong to another instruction set, and are unknown to most kernels.
    end: Option<u32>,
}

#[cfg(target_arch = "x86_64")]
const ENTRIES: &[Entry] = &[
    Entry {
        id: 0xc000_003e,
        prlimit64: 302,
        sched_setattr: 314,
        ioctl: 16,
        end: Some(X32),
    },
    // i386
    Entry {
        id: 0x4000_0003,
        prlimit64: 340,
        sched_setattr: 351,
        ioctl: 54,
        end: None,
    },
];

#[cfg(all(target_arch = "aarch64", target_endian = "little"))]
const ENTRIES: &[Entry] = &[
    Entry {
        id: 0xc000_00b7,
        prlimit64: 261,
        sched_setattr: 274,
        ioctl: 29,
        end: None,
    },
    // 32-bit ARM
    Entry {
        id: 0x4000_0028,
        prlimit64: 369,
        sched_setattr: 380,
        ioctl: 54,
        end: None,
    },
];

#[cfg(not(any(
    target_arch = "x86_64",
    all(target_arch = "aarch64", target_endian = "little")
)))]
const ENTRIES: &[Entry] = &[];

/// Installs the filter for the calling thread and everything that it starts, permanently. Does
/// nothing on a kernel without filters, and on a processor whose numbers are not listed. The thread
/// cannot gain privileges by a setuid program afterwards.
pub(super) fn refuse() -> io::Result<()> {
    if ENTRIES.is_empty() {
        return Ok(());
    }
    let lacking = |error: &io::Error| matches!(error.raw_os_error(), Some(ENOSYS | EINVAL));
    match seccompiler::apply_filter(&program()) {
        Ok(()) => Ok(()),
        Err(Error::Seccomp(error)) if lacking(&error) => Ok(()),
        Err(error) => Err(io::Error::other(error)),
    }
}

fn program() -> Vec<Instruction> {
    let mut program = vec![load(ENTRY)];
    for entry in ENTRIES {
        let calls = entry.refusals();
        let length = u8::try_from(calls.len()).unwrap_or(u8::MAX);
        program.push(equal(entry.id, 0, length));
        program.extend(calls);
    }
    program.push(end(UNKNOWN));
    program
}

impl Entry {
    /// Returns the instructions for calls at this entry. Jumps count the instructions to skip.
    fn refusals(&self) -> Vec<Instruction> {
        let mut calls = vec![load(NUMBER)];
        if let Some(first) = self.end {
            calls.extend([at_least(first, 0, 1), end(UNKNOWN)]);
        }
        // Limits of another process (pid is not 0) may be read: the pointer to new ones is null.
        calls.extend([
            equal(self.prlimit64, 0, 8),
            load(low(0)),
            equal(0, 4, 0),
            load(low(2)),
            equal(0, 0, 3),
            load(high(2)),
            equal(0, 0, 1),
            end(ALLOW),
            end(REFUSE),
        ]);
        // A deadline that is missed can be told by a signal that ends the process.
        calls.extend([
            equal(self.sched_setattr, 0, 4),
            load(low(0)),
            equal(0, 0, 1),
            end(ALLOW),
            end(REFUSE),
        ]);
        calls.extend([
            equal(self.ioctl, 0, 5),
            load(low(1)),
            equal(TIOCSTI, 2, 0),
            equal(TIOCLINUX, 1, 0),
            end(ALLOW),
            end(REFUSE),
        ]);
        calls.push(end(ALLOW));
        calls
    }
}

/// Offset of the low half of an argument.
const fn low(argument: u32) -> u32 {
    16 + 8 * argument
}

const fn high(argument: u32) -> u32 {
    low(argument) + 4
}

fn load(offset: u32) -> Instruction {
    instruction(BPF_LD | BPF_W | BPF_ABS, 0, 0, offset)
}

/// Skips `yes` instructions if the loaded value equals `value`, `no` instructions if not.
fn equal(value: u32, yes: u8, no: u8) -> Instruction {
    instruction(BPF_JMP | BPF_JEQ | BPF_K, yes, no, value)
}

fn at_least(value: u32, yes: u8, no: u8) -> Instruction {
    instruction(BPF_JMP | BPF_JGE | BPF_K, yes, no, value)
}

fn end(result: u32) -> Instruction {
    instruction(BPF_RET | BPF_K, 0, 0, result)
}

fn instruction(code: u32, jt: u8, jf: u8, k: u32) -> Instruction {
    let code = code as u16;
    Instruction { code, jt, jf, k }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs the program as the kernel does.
    fn result(entry: u32, number: u32, arguments: [u64; 3]) -> u32 {
        let value = |offset: u32| match offset {
            NUMBER => number,
            ENTRY => entry,
            _ => {
                let argument = arguments[(offset as usize - 16) / 8];
                (argument >> (8 * (offset % 8))) as u32
            }
        };
        let program = program();
        let (mut at, mut loaded) = (0, 0);
        loop {
            let it = &program[at];
            at += 1;
            let skipped = |holds: bool| usize::from(if holds { it.jt } else { it.jf });
            match u32::from(it.code) {
                code if code == BPF_LD | BPF_W | BPF_ABS => loaded = value(it.k),
                code if code == BPF_JMP | BPF_JEQ | BPF_K => at += skipped(loaded == it.k),
                code if code == BPF_JMP | BPF_JGE | BPF_K => at += skipped(loaded >= it.k),
                _ => return it.k,
            }
        }
    }

    #[test]
    fn calls_that_reach_others_are_refused_at_every_entry() {
        let far = 0x7fff_0000_0000;
        for entry in ENTRIES {
            let of = |number, arguments| result(entry.id, number, arguments);
            for pointer in [1, far] {
                assert_eq!(of(entry.prlimit64, [7, 0, pointer]), REFUSE);
                assert_eq!(of(entry.prlimit64, [1 << 32, 0, pointer]), ALLOW);
            }
            assert_eq!(of(entry.prlimit64, [0, 0, far]), ALLOW);
            assert_eq!(of(entry.prlimit64, [7, 0, 0]), ALLOW);
            assert_eq!(of(entry.sched_setattr, [7, far, 0]), REFUSE);
            assert_eq!(of(entry.sched_setattr, [0, far, 0]), ALLOW);
            for request in [TIOCSTI, TIOCLINUX] {
                let wide = u64::from(request) | 1 << 40;
                assert_eq!(of(entry.ioctl, [0, wide, 0]), REFUSE);
            }
            // TCGETS
            assert_eq!(of(entry.ioctl, [0, 0x5401, 0]), ALLOW);
            assert_eq!(of(0, [7, 7, 7]), ALLOW);
            if let Some(first) = entry.end {
                assert_eq!(of(first | entry.prlimit64, [0, 0, 0]), UNKNOWN);
            }
        }
        assert_eq!(result(0, 0, [0, 0, 0]), UNKNOWN);
    }

    #[test]
    #[cfg(target_arch = "x86_64")]
    fn the_numbers_are_those_of_the_library() {
        use nix::libc;
        let own = &ENTRIES[0];
        let listed = [own.prlimit64, own.sched_setattr, own.ioctl].map(i64::from);
        let known = [
            libc::SYS_prlimit64,
            libc::SYS_sched_setattr,
            libc::SYS_ioctl,
        ];
        assert_eq!(listed, known);
    }
}
