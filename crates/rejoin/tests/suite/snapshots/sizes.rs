//! Sessions of every size come back byte for byte, within 128 MiB of memory whatever their size is.
//! Each is captured and put back by a process that does only that, so its peak is its own.

use std::fs::File;
use std::io::{Read as _, Write as _};
use std::path::Path;
use std::process::Command;

use super::keeper::Keeper;

const KB: u64 = 1000;
const MB: u64 = 1000 * KB;
/// In KiB, as the kernel counts.
const MOST_MEMORY: u64 = 128 * 1024;
const BLOBS: [&str; 2] = ["db:", "file:blobs"];

/// B-21: the sizes that the document measured.
#[test]
fn up_to_12_mb() {
    for blobs in BLOBS {
        for (bytes, line) in [(0, 1), (1, 1), (100 * KB, KB), (12 * MB, 4 * KB)] {
            there_and_back(blobs, bytes, line);
        }
    }
}

#[test]
fn single_lines_of_50_mb() {
    for blobs in BLOBS {
        there_and_back(blobs, 50 * MB, 50 * MB);
    }
}

#[test]
fn of_200_mb() {
    there_and_back("db:", 200 * MB, 4 * KB);
}

#[test]
fn of_200_mb_in_lines_of_50_in_files() {
    there_and_back("file:blobs", 200 * MB, 50 * MB);
}

#[test]
#[ignore = "only with --long"]
fn of_200_mb_the_other_way_round() {
    there_and_back("db:", 200 * MB, 50 * MB);
    there_and_back("file:blobs", 200 * MB, 4 * KB);
}

#[test]
#[ignore = "only with --long"]
fn of_a_gibibyte() {
    for blobs in BLOBS {
        there_and_back(blobs, 1 << 30, 4 * KB);
        there_and_back(blobs, 1 << 30, 50 * MB);
    }
}

fn there_and_back(blobs: &str, bytes: u64, line: u64) {
    let root = tempfile::tempdir().unwrap();
    let home = root.path().join("home");
    fs_err::create_dir(&home).unwrap();
    let session = home.join("s.jsonl");
    write(&session, bytes, line);
    for doing in ["capture", "restore"] {
        let peak = alone(doing, root.path(), blobs);
        assert!(
            peak < MOST_MEMORY,
            "{doing} of {bytes} B, {blobs}: {peak} KiB"
        );
    }
    let back = root.path().join("back/s.jsonl");
    assert_eq!(hash_of(&back), hash_of(&session), "{bytes} B of {line}");
}

/// In a process of its own, which says how much memory it took, in KiB.
fn alone(doing: &str, root: &Path, blobs: &str) -> u64 {
    let done = Command::new(std::env::current_exe().unwrap())
        .args(["--exact", "suite::snapshots::sizes::a_process_of_its_own"])
        .args(["--ignored", "--nocapture"])
        .env("SIZES_DO", doing)
        .env("SIZES_ROOT", root)
        .env("SIZES_BLOBS", blobs)
        .output()
        .unwrap();
    let said = String::from_utf8_lossy(&done.stdout).into_owned();
    let peak = said.lines().find_map(|l| l.split_once("VmHWM:"));
    let peak = peak.and_then(|(_, kib)| kib.trim().strip_suffix(" kB")?.parse().ok());
    peak.filter(|_| done.status.success())
        .unwrap_or_else(|| panic!("{doing}: {done:?}"))
}

#[test]
#[ignore = "run by the others"]
fn a_process_of_its_own() {
    let (Ok(doing), Ok(root)) = (std::env::var("SIZES_DO"), std::env::var("SIZES_ROOT")) else {
        return;
    };
    let (root, blobs) = (Path::new(&root), std::env::var("SIZES_BLOBS").unwrap());
    let runtime = tokio::runtime::Builder::new_current_thread()
        .enable_all()
        .build();
    runtime.unwrap().block_on(async {
        let mut keeper = Keeper::open(root, &blobs).await;
        if doing == "capture" {
            keeper.confirm().await;
            keeper.capture(None).await;
            let before = keeper.mark();
            if before.as_ref().is_some_and(|mark| mark.length > MB) {
                let file = File::options().append(true).open(keeper.file());
                file.unwrap().write_all(b"one more line\n").unwrap();
                keeper.confirm().await;
                keeper.capture(before.as_ref()).await;
            }
        } else {
            let to = root.join("back");
            fs_err::create_dir(&to).unwrap();
            keeper.restore(&to).await;
        }
    });
    let status = fs_err::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find(|l| l.starts_with("VmHWM:")).unwrap();
    let mut out = std::io::stdout().lock();
    writeln!(out, "\n{peak}").unwrap();
}

/// Bytes that repeat nowhere, in lines of that length.
fn write(path: &Path, bytes: u64, line: u64) {
    let mut source = blake3::Hasher::new().finalize_xof();
    let mut file = File::create(path).unwrap();
    let mut buffer = vec![0; 1 << 20];
    let mut at = 0;
    while at < bytes {
        let now = buffer.len().min((bytes - at) as usize);
        let part = &mut buffer[..now];
        source.fill(part);
        for byte in &mut *part {
            *byte |= 0x40;
        }
        let mut end = (line - at % line) as usize;
        while end <= part.len() {
            part[end - 1] = b'\n';
            end += line as usize;
        }
        file.write_all(part).unwrap();
        at += now as u64;
    }
}

fn hash_of(path: &Path) -> blake3::Hash {
    let mut hasher = blake3::Hasher::new();
    let mut file = File::open(path).unwrap();
    let mut buffer = vec![0; 1 << 20];
    loop {
        let got = file.read(&mut buffer).unwrap();
        if got == 0 {
            return hasher.finalize();
        }
        hasher.update(&buffer[..got]);
    }
}
