//! Processes outside a run, reached by their number: limits, traces, descriptors, scheduling, files of
//! the kernel. None of them is changed, and none of this is missing inside.

use rejoin_testkit::World;

use super::{landlock, left_out_without, namespace, script, tried};

/// Tries everything on the process of its first argument, and prints each name with what came of it.
const REACH: &str = r#"#!/usr/bin/env python3
import ctypes, mmap, os, resource, signal, struct, sys
libc = ctypes.CDLL(None, use_errno=True)
pid = int(sys.argv[1])
limits = struct.pack("qq", *resource.getrlimit(resource.RLIMIT_CPU))
limits = ctypes.create_string_buffer(limits)
def call(number, *args):
    ctypes.set_errno(0)
    if libc.syscall(ctypes.c_long(number), *args) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def compatible(number, *args):
    # The entry for 32-bit programs: its arguments lie below 4 GiB.
    page = mmap.mmap(-1, 4096, mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | 0x40, 7)
    at = ctypes.addressof(ctypes.c_char.from_buffer(page))
    page[512:528] = limits.raw[:16]
    args = [at + 512 if a is limits else a for a in args] + [0] * (4 - len(args))
    code = b"\x53\xb8" + struct.pack("<I", number) + b"\xbb" + struct.pack("<I", args[0])
    for op, arg in zip((b"\xb9", b"\xba", b"\xbe"), args[1:]):
        code += op + struct.pack("<I", arg)
    page[:len(code) + 4] = code + b"\xcd\x80\x5b\xc3"
    result = ctypes.CFUNCTYPE(ctypes.c_int)(at)()
    if result < 0:
        raise OSError(-result, os.strerror(-result))
def seize():
    if libc.ptrace(0x4206, pid, None, None) < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
def write(path, text=""):
    with open(path, "a") as file: file.write(text)
def end_by_group():
    # Only in a group of its own would it end others.
    for at, _, files in os.walk("/sys/fs/cgroup"):
        for name in ("cgroup.procs", "tasks"):
            if name in files:
                try:
                    os.close(os.open(os.path.join(at, name), os.O_WRONLY))
                    return
                except OSError as error: last = error
    raise last
iov = ctypes.create_string_buffer(struct.pack("QQ", ctypes.addressof(limits), 16))
attributes = ctypes.create_string_buffer(struct.pack("IIQiIQQQ", 48, 0, 0, 0, 0, 0, 0, 0))
tries = {
    "prlimit": lambda: resource.prlimit(pid, resource.RLIMIT_CPU, resource.getrlimit(resource.RLIMIT_CPU)),
    "sched_setattr": lambda: call(314, pid, attributes, 0),
    "ptrace": seize,
    "process_vm_writev": lambda: call(311, pid, iov, 1, iov, 1, 0),
    "pidfd_getfd": lambda: call(438, os.pidfd_open(pid), 0, 0),
    "pidfd_send_signal": lambda: signal.pidfd_send_signal(os.pidfd_open(pid), signal.SIGCONT),
    "kcmp": lambda: call(312, pid, os.getpid(), 0, 0, 0),
    "mem": lambda: write(f"/proc/{pid}/mem"),
    "cgroup": end_by_group,
}
if os.uname().machine == "x86_64":
    tries["prlimit, 32 bits"] = lambda: compatible(340, pid, 0, limits, 0)
    tries["prlimit, x32"] = lambda: call(0x40000000 | 302, pid, 0, limits, None)
if os.getuid() == 0:
    tries["oom_score_adj"] = lambda: write(f"/proc/{pid}/oom_score_adj", open(f"/proc/{pid}/oom_score_adj").read())
    tries["core_pattern"] = lambda: write("/proc/sys/kernel/core_pattern")
    tries["sysrq"] = lambda: write("/proc/sysrq-trigger")
def words():
    import fcntl, termios
    fcntl.ioctl(os.open("/dev/null", os.O_RDWR), termios.TIOCSTI, b"x")
for name, attempt in tries.items():
    try:
        attempt()
        print(f"{name}: done")
    except OSError as error:
        print(f"{name}: {error.strerror}")
try: words()
except OSError as error: print("words for a terminal:", error.strerror)
"#;

/// What a process may do to itself and to those that it starts.
const OWN: &[&str] = &[
    "ulimit -n 64 && ulimit -S -c 0",
    "nice -n 5 true",
    "taskset -c 0 true",
    "chrt -i 0 true",
    "prlimit --nofile=64 true",
    "prlimit --pid $$ --nofile",
    "sleep 60 & renice -n 5 -p $!; kill $!",
    "python3 -c 'import resource; resource.setrlimit(resource.RLIMIT_CPU, (9, 9))'",
    "python3 -c 'import os, threading; os.sched_setaffinity(threading.get_native_id(), {0})'",
    "timeout 9 true && setsid -w true",
    "git init -q made && node -e 'process.exit(0)'",
];

/// Runs a prompt behind a wall and returns its words.
type Printed = fn(&World, &str) -> String;

fn others_are_out_of_reach(world: &World, printed: Printed) {
    let reach = world.work().join("reach");
    world.script(&reach, REACH);
    let shim = "$(awk '{print $4}' /proc/$PPID/stat)";
    let said = printed(world, &format!("./reach {shim}"));
    let Some((calls, words)) = said.split_once("words for a terminal: ") else {
        panic!("{said}");
    };
    assert_eq!(words.trim(), "Operation not permitted", "{said}");
    assert!(calls.lines().count() > 8, "{said}");
    assert!(!calls.contains(": done"), "{said}");
    // The numbers are right: a process of the run can be reached with all calls that no filter refuses.
    let own = printed(world, "sleep 60 & ./reach $!; kill $!");
    for name in ["ptrace", "pidfd_send_signal", "kcmp"] {
        assert!(own.contains(&format!("{name}: done")), "{own}");
    }
    let commands: Vec<String> = OWN.iter().map(|&it| it.to_owned()).collect();
    let said = printed(world, &script(&commands));
    for tried in tried(&commands, &said) {
        assert_eq!(tried.code, 0, "{tried:?}");
    }
}

#[test]
fn from_behind_mounts() {
    let Some(world) = namespace::walled() else {
        return;
    };
    others_are_out_of_reach(&world, super::printed);
}

#[test]
fn from_behind_landlock() {
    let Some(world) = landlock::given_away(super::shell()) else {
        return;
    };
    if !landlock::signals_stay_inside() {
        left_out_without("signals stay inside with Linux 6.12 or newer");
        return;
    }
    others_are_out_of_reach(&world, landlock::printed);
}
