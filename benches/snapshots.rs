//! What it takes to keep a session and to get it back, beside what else could: gzip of the whole file,
//! restic. `cargo bench --profile dist -p rejoin --bench snapshots [-- ROUNDS]`
//!
//! The session is made: JSON lines as Claude Code writes them, of pieces of this repository. Every row's alternatives are measured in the same run, one after the other in each round.
#![allow(
    clippy::unwrap_used,
    clippy::print_stdout,
    clippy::disallowed_methods,
    reason = "a benchmark prints, and starts processes"
)]

use std::fs::{self, File};
use std::io::{self, Write};
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use flate2::Compression;
use flate2::read::GzDecoder;
use flate2::write::GzEncoder;

#[path = "../crates/rejoin/tests/suite/snapshots/keeper.rs"]
mod keeper;

use keeper::Keeper;

const KB: usize = 1000;
const MB: usize = 1000 * KB;
const GIB: usize = 1 << 30;

#[tokio::main(flavor = "current_thread")]
async fn main() {
    let args: Vec<String> = std::env::args().filter(|a| a != "--bench").collect();
    if let [_, doing, root] = &args[..] {
        return alone(doing, Path::new(root)).await;
    }
    let rounds = args.get(1).and_then(|n| n.parse().ok()).unwrap_or(25);
    capture(rounds).await;
    restore(12 * MB, rounds).await;
    restore(2 * MB, 4 * rounds).await;
    for added in [2 * KB, 60 * KB] {
        after_200_turns(added).await;
    }
    memory();
}

/// One turn that adds 200 KB to 12 MB.
async fn capture(rounds: usize) {
    let root = tempfile::tempdir().unwrap();
    let mut keeper = Keeper::open(root.path(), "db:").await;
    let file = keeper.file();
    let mut text = Text::new(1);
    add(&file, &text.lines(12 * MB));
    keeper.confirm().await;
    keeper.capture(None).await;
    let restic = Restic::new(root.path());
    if let Some(restic) = &restic {
        restic.backup(&file);
    }
    let mut rows = Rows::default();
    for _ in 0..rounds {
        let before = keeper.mark();
        add(&file, &text.lines(200 * KB));
        keeper.confirm().await;
        let stored = stored(&keeper).await;
        let took = {
            let begun = Instant::now();
            keeper.capture(before.as_ref()).await;
            // The store leaves that to the system; the others here do it too.
            let log = File::open(root.path().join("rejoin.db-wal"));
            log.unwrap().sync_all().unwrap();
            begun.elapsed()
        };
        rows.add("rejoin", took, self::stored(&keeper).await - stored);
        let (took, bytes) = gzip(&file, &root.path().join("library.gz"));
        rows.add("gzip -6, as a library", took, bytes);
        let (took, bytes) = gzip_program(&file, &root.path().join("program.gz"));
        rows.add("gzip -6, the program", took, bytes);
        if let Some(restic) = &restic {
            let was = restic.bytes();
            let begun = Instant::now();
            restic.backup(&file);
            rows.add("restic backup", begun.elapsed(), restic.bytes() - was);
        }
    }
    rows.print("a turn that added 200 KB to 12 MB, captured", "new bytes");
}

/// Into an empty home, on the disk when it is done.
async fn restore(bytes: usize, rounds: usize) {
    let root = tempfile::tempdir().unwrap();
    let mut keeper = Keeper::open(root.path(), "db:").await;
    let file = keeper.file();
    add(&file, &Text::new(2).lines(bytes));
    keeper.confirm().await;
    keeper.capture(None).await;
    let packed = root.path().join("packed.gz");
    gzip(&file, &packed);
    let text = fs::read(&file).unwrap();
    let mut rows = Rows::default();
    for n in 0..rounds {
        let to = root.path().join(format!("home-{n}"));
        fs::create_dir(&to).unwrap();
        let timed = |name| (Instant::now(), to.join(name));
        let begun = Instant::now();
        let back = keeper.restore(&to).await;
        rows.add("rejoin", begun.elapsed(), length(&back));
        assert!(fs::read(&back).unwrap() == text);

        let (begun, library) = timed("library");
        let mut out = File::create(&library).unwrap();
        let mut from = GzDecoder::new(File::open(&packed).unwrap());
        io::copy(&mut from, &mut out).unwrap();
        synced(&out, &to);
        rows.add("gunzip, as a library", begun.elapsed(), length(&library));

        let (begun, program) = timed("program");
        let out = File::create(&program).unwrap();
        let mut gunzip = Command::new("gzip");
        gunzip.arg("-dc").arg(&packed).stdout(Stdio::from(out));
        assert!(gunzip.status().unwrap().success());
        synced(&File::open(&program).unwrap(), &to);
        rows.add("gunzip, the program", begun.elapsed(), length(&program));

        let (begun, plain) = timed("plain");
        let mut out = File::create(&plain).unwrap();
        out.write_all(&text).unwrap();
        synced(&out, &to);
        rows.add("only written", begun.elapsed(), length(&plain));
        fs::remove_dir_all(&to).unwrap();
    }
    let what = format!("{} MB put back into an empty home", bytes / MB);
    rows.print(&what, "bytes");
}

/// What is stored in the end, every state of it still there.
async fn after_200_turns(added: usize) {
    let root = tempfile::tempdir().unwrap();
    let mut keeper = Keeper::open(root.path(), "db:").await;
    let file = keeper.file();
    let mut text = Text::new(3);
    let mut gzipped = 0;
    for _ in 0..200 {
        let before = keeper.mark();
        add(&file, &text.lines(added));
        keeper.confirm().await;
        keeper.capture(before.as_ref()).await;
        gzipped += gzip(&file, &root.path().join("packed.gz")).1;
    }
    let kept = stored(&keeper).await;
    println!(
        "\n200 turns of {} KB: rejoin keeps {:.2} MB, one gzip of the whole file per turn {:.2} MB: {:.1}x",
        added / KB,
        kept as f64 / 1e6,
        gzipped as f64 / 1e6,
        gzipped as f64 / kept as f64
    );
}

fn memory() {
    let root = tempfile::tempdir().unwrap();
    println!("\n| 1 GiB | peak memory |\n|---|--:|");
    fs::create_dir(root.path().join("home")).unwrap();
    let file = root.path().join("home/s.jsonl");
    let mut text = Text::new(4);
    for _ in 0..GIB / (8 * MB) {
        add(&file, &text.lines(8 * MB));
    }
    for doing in ["nothing", "captured", "put back"] {
        let done = Command::new(std::env::current_exe().unwrap())
            .args([doing, root.path().to_str().unwrap()])
            .output()
            .unwrap();
        assert!(done.status.success(), "{done:?}");
        print!("| {doing} | {}", String::from_utf8_lossy(&done.stdout));
    }
}

/// In a process that does only that.
async fn alone(doing: &str, root: &Path) {
    let mut keeper = Keeper::open(root, "db:").await;
    if doing == "captured" {
        keeper.confirm().await;
        keeper.capture(None).await;
    }
    if doing == "put back" {
        let to = root.join("back");
        fs::create_dir(&to).unwrap();
        keeper.restore(&to).await;
    }
    let status = fs::read_to_string("/proc/self/status").unwrap();
    let peak = status.lines().find_map(|l| l.strip_prefix("VmHWM:"));
    let peak: f64 = peak
        .unwrap()
        .trim()
        .trim_end_matches(" kB")
        .parse()
        .unwrap();
    println!("{:.0} MiB |", peak / 1024.0);
}

/// Bytes of all chunks and manifests.
async fn stored(keeper: &Keeper) -> u64 {
    let mut read = keeper.vault.store.read().await.unwrap();
    let all = read.snapshots().after(None, 10_000).await.unwrap();
    all.iter().map(|snapshot| snapshot.added).sum()
}

fn gzip(file: &Path, to: &Path) -> (Duration, u64) {
    let begun = Instant::now();
    let out = File::create(to).unwrap();
    let mut packer = GzEncoder::new(out, Compression::new(6));
    io::copy(&mut File::open(file).unwrap(), &mut packer).unwrap();
    packer.finish().unwrap().sync_all().unwrap();
    (begun.elapsed(), length(to))
}

fn gzip_program(file: &Path, to: &Path) -> (Duration, u64) {
    let begun = Instant::now();
    let out = File::create(to).unwrap();
    let mut gzip = Command::new("gzip");
    gzip.arg("-6c").arg(file).stdout(Stdio::from(out));
    assert!(gzip.status().unwrap().success());
    File::open(to).unwrap().sync_all().unwrap();
    (begun.elapsed(), length(to))
}

fn synced(file: &File, folder: &Path) {
    file.sync_all().unwrap();
    File::open(folder).unwrap().sync_all().unwrap();
}

fn length(file: &Path) -> u64 {
    fs::metadata(file).unwrap().len()
}

fn add(file: &Path, text: &[u8]) {
    let open = File::options().create(true).append(true).open(file);
    open.unwrap().write_all(text).unwrap();
}

/// A repository of its own.
struct Restic {
    repository: std::path::PathBuf,
}

impl Restic {
    fn new(root: &Path) -> Option<Self> {
        let restic = Self {
            repository: root.join("restic"),
        };
        let made = restic.command().arg("init").output();
        if made.as_ref().is_ok_and(|made| made.status.success()) {
            return Some(restic);
        }
        println!("SKIPPED: restic is not installed ({made:?})");
        None
    }

    fn command(&self) -> Command {
        let mut command = Command::new("restic");
        command
            .arg("--repo")
            .arg(&self.repository)
            .args(["--quiet", "--no-cache"])
            .env("RESTIC_PASSWORD", "benchmark");
        command
    }

    fn backup(&self, file: &Path) {
        let done = self.command().arg("backup").arg(file).output().unwrap();
        assert!(done.status.success(), "{done:?}");
    }

    fn bytes(&self) -> u64 {
        fn beneath(folder: &Path) -> u64 {
            let entries = fs::read_dir(folder).unwrap().flatten();
            let bytes = |entry: fs::DirEntry| match entry.file_type() {
                Ok(kind) if kind.is_dir() => beneath(&entry.path()),
                Ok(_) | Err(_) => entry.metadata().map_or(0, |meta| meta.len()),
            };
            entries.map(bytes).sum()
        }
        beneath(&self.repository)
    }
}

/// Measurements of the same thing done in several ways; the first is ours.
#[derive(Default)]
struct Rows(Vec<(&'static str, Vec<Duration>, Vec<u64>)>);

impl Rows {
    fn add(&mut self, name: &'static str, took: Duration, bytes: u64) {
        if !self.0.iter().any(|(known, ..)| *known == name) {
            self.0.push((name, vec![], vec![]));
        }
        let row = self.0.iter_mut().find(|(known, ..)| *known == name);
        let (_, times, sizes) = row.unwrap();
        times.push(took);
        sizes.push(bytes);
    }

    fn print(mut self, what: &str, bytes: &str) {
        println!("\n| {what} | median | p95 | {bytes} | time, ours = 1 | bytes, ours = 1 |");
        println!("|---|--:|--:|--:|--:|--:|");
        for (_, times, sizes) in &mut self.0 {
            times.sort();
            sizes.sort_unstable();
        }
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let middle = |of: &(_, Vec<Duration>, Vec<u64>)| {
            (ms(of.1[of.1.len() / 2]), of.2[of.2.len() / 2] as f64)
        };
        let ours = middle(&self.0[0]);
        for row in &self.0 {
            let (time, size) = middle(row);
            let late = ms(row.1[row.1.len() * 95 / 100]);
            println!(
                "| {} | {time:.1} ms | {late:.1} ms | {:.0} KB | {:.1} | {:.1} |",
                row.0,
                size / 1e3,
                time / ours.0,
                size / ours.1
            );
        }
    }
}

/// Lines of a session about this repository: pieces of its own files, the same for the same seed.
struct Text {
    state: u64,
    source: String,
    line: u64,
}

impl Text {
    fn new(seed: u64) -> Self {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
        let mut source = String::new();
        for folder in ["crates", "docs"] {
            gather(&root.join(folder), &mut source);
        }
        Self {
            state: seed,
            source,
            line: 0,
        }
    }

    /// splitmix64
    fn draw(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let z = (self.state ^ (self.state >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    fn id(&mut self) -> String {
        let (a, b) = (self.draw(), self.draw());
        format!(
            "{:08x}-{:04x}-4{:03x}-{:016x}",
            a as u32,
            a >> 48,
            b & 0xfff,
            a ^ b
        )
    }

    /// About so many bytes of whole lines.
    fn lines(&mut self, bytes: usize) -> Vec<u8> {
        let mut all = Vec::with_capacity(bytes + 10 * KB);
        let mut parent = self.id();
        while all.len() < bytes {
            self.line += 1;
            let id = self.id();
            let from = self.draw() as usize % (self.source.len() - 8 * KB);
            let length = 200 + self.draw() as usize % (4 * KB).min(bytes);
            let from = self.source.floor_char_boundary(from);
            let to = self.source.floor_char_boundary(from + length);
            let kind = ["user", "assistant"][(self.line % 2) as usize];
            let seconds = self.line / 1000 % 60;
            let line = serde_json::json!({
                "parentUuid": parent, "isSidechain": false, "userType": "external",
                "cwd": "/home/someone/project", "sessionId": "0f0e0d0c-0b0a-4908-8706-050403020100",
                "version": "2.1.325", "gitBranch": "main", "type": kind, "uuid": id,
                "message": {"role": kind, "content": [{"type": "text", "text": &self.source[from..to]}]},
                "timestamp": format!("2026-11-15T12:00:{seconds:02}.{:03}Z", self.line % 1000),
            });
            writeln!(all, "{line}").unwrap();
            parent = id;
        }
        all
    }
}

/// The text of all files beneath a folder, in their order by name.
fn gather(folder: &Path, into: &mut String) {
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    for path in paths {
        if path.is_dir() {
            gather(&path, into);
        } else if let Ok(text) = fs::read_to_string(&path) {
            into.push_str(&text);
        }
    }
}
