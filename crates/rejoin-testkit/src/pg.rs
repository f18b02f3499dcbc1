//! PostgreSQL servers for tests. A server that already runs on this machine is never used.
//!
//! Each server runs under a small shell that waits for the end of its stdin. However a test process
//! ends, its servers stop and their folders are removed.

use std::io::{BufRead as _, BufReader, Write as _};
use std::os::unix::process::CommandExt as _;
use std::path::PathBuf;
use std::process::{Child, ChildStdin, Command, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Mutex, OnceLock};

use crate::clis::needed;

/// `$1`: folder; `$2`: the programs; `$3`: a port, or empty; `$4`: a password, or empty; `$5`: the
/// name in a certificate, or empty. Reads one command per line and answers each with one word.
const GUARD: &str = r#"
trap '' INT TERM HUP
dir=$1 bin=$2 port=$3 password=$4 name=$5
as() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
cd "$dir" || exit 1
if [ "$(id -u)" = 0 ]; then chown postgres "$dir"; fi
chmod 700 "$dir"
auth='-A trust'
if [ -n "$password" ]; then
    printf %s "$password" > pw; chmod 644 pw
    auth="-A scram-sha-256 --pwfile=$dir/pw"
fi
as "$bin/initdb" -D "$dir/data" -U postgres $auth -E UTF8 --locale=C.UTF-8 --no-sync >init.log 2>&1
listen="-c listen_addresses=''"
if [ -n "$port" ]; then listen="-c listen_addresses=127.0.0.1 -c port=$port"; fi
if [ -n "$name" ]; then
    new='-newkey ec -pkeyopt ec_paramgen_curve:prime256v1 -nodes'
    {
        openssl req -x509 $new -days 2 -subj /CN=authority -keyout ca.key -out ca.crt
        openssl req $new -subj "/CN=$name" -keyout data/server.key -out server.csr
        echo "subjectAltName=DNS:$name" > names
        openssl x509 -req -in server.csr -CA ca.crt -CAkey ca.key -CAcreateserial -days 2 \
            -extfile names -out data/server.crt
    } >>init.log 2>&1
    chmod 600 data/server.key
    if [ "$(id -u)" = 0 ]; then chown postgres data/server.key data/server.crt; fi
    sed -i 's/^host /hostssl /' data/pg_hba.conf
    listen="$listen -c ssl=on"
fi
start() {
    as "$bin/pg_ctl" -D "$dir/data" -s -w -l "$dir/log" -o "$listen -c unix_socket_directories=$dir \
        -c fsync=off -c synchronous_commit=off -c full_page_writes=off -c max_connections=200 \
        -c shared_buffers=32MB" start >start.log 2>&1
}
stop() { as "$bin/pg_ctl" -D "$dir/data" -s -w -m "$1" stop >/dev/null 2>&1; }
if start; then echo ready; else cat init.log start.log log >&2; echo failed; fi
while read -r word; do
    case $word in
        stop) stop fast; echo done ;;
        crash) stop immediate; echo done ;;
        start) start; echo done ;;
    esac
done
stop immediate
cd /; rm -rf "$dir"
"#;

/// A server that lives as long as this value, and no longer than the test process.
pub struct PgServer {
    dir: PathBuf,
    bin: PathBuf,
    port: Option<u16>,
    password: Option<String>,
    guard: Mutex<(ChildStdin, BufReader<std::process::ChildStdout>)>,
    /// Not waited for: it exits when its stdin ends.
    _shell: Child,
}

/// A schema for one test on the server of this test process. Dropped with this value.
pub struct Database {
    pub url: String,
    name: String,
}

/// Creates an empty database for one test. Never returns `None`: a test without PostgreSQL fails.
pub fn database() -> Option<Database> {
    static COUNT: AtomicU32 = AtomicU32::new(0);
    let server = shared()?;
    let name = format!("t{}", COUNT.fetch_add(1, Ordering::Relaxed));
    server.psql(&format!("create schema {name}"));
    Some(Database {
        url: format!("{}?options=-csearch_path%3D{name}", server.url()),
        name,
    })
}

impl Database {
    /// Runs a statement in it and returns the output, one row per line.
    pub fn psql(&self, statement: &str) -> String {
        let server = shared().unwrap();
        server.psql(&format!("set search_path = {}; {statement}", self.name))
    }

    /// Returns the name of its schema.
    pub fn schema(&self) -> &str {
        &self.name
    }

    pub fn server(&self) -> &'static PgServer {
        shared().unwrap()
    }
}

impl Drop for Database {
    fn drop(&mut self) {
        if let Some(server) = shared() {
            // Does not wait for connections that still use it.
            let statement = format!("set lock_timeout = '2s'; drop schema {} cascade", self.name);
            drop(server.command(&statement).output());
        }
    }
}

fn shared() -> Option<&'static PgServer> {
    static SHARED: OnceLock<Option<PgServer>> = OnceLock::new();
    SHARED.get_or_init(PgServer::start).as_ref()
}

impl PgServer {
    /// Starts a server. Never returns `None`: a test without PostgreSQL fails.
    pub fn start() -> Option<Self> {
        Some(Self::start_with(None, None))
    }

    /// Starts a server on a loopback port, with a password.
    pub fn with_password(password: &str) -> Option<Self> {
        Some(Self::start_with(Some(password), None))
    }

    /// Starts a server with a password and a certificate for that name, signed by
    /// [`PgServer::authority`]. It accepts only TLS connections.
    pub fn with_certificate(password: &str, name: &str) -> Option<Self> {
        Some(Self::start_with(Some(password), Some(name)))
    }

    /// Returns the certificate of the authority that signed the server's certificate.
    pub fn authority(&self) -> PathBuf {
        self.dir.join("ca.crt")
    }

    fn start_with(password: Option<&str>, name: Option<&str>) -> Self {
        let bin = installed();
        let port = password.map(|_| {
            let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
            free.local_addr().unwrap().port()
        });
        // The path of a socket must be short, and every user can enter this folder.
        let dir = tempfile::Builder::new()
            .prefix("rj-pg-")
            .tempdir_in("/tmp")
            .unwrap()
            .keep();
        let mut shell = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(&dir)
            .arg(&bin)
            .arg(port.map(|p| p.to_string()).unwrap_or_default())
            .arg(password.unwrap_or_default())
            .arg(name.unwrap_or_default())
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            // Ctrl-C is for the tests; this shell must outlive them.
            .process_group(0)
            .spawn()
            .unwrap();
        let stdin = shell.stdin.take().unwrap();
        let mut stdout = BufReader::new(shell.stdout.take().unwrap());
        let mut word = String::new();
        stdout.read_line(&mut word).unwrap();
        assert_eq!(word, "ready\n", "the PostgreSQL server does not start");
        Self {
            dir,
            bin,
            port,
            password: password.map(str::to_owned),
            guard: Mutex::new((stdin, stdout)),
            _shell: shell,
        }
    }

    pub fn url(&self) -> String {
        match (self.port, &self.password) {
            (Some(port), Some(password)) => {
                format!("postgres://postgres:{password}@127.0.0.1:{port}/postgres")
            }
            _ => {
                let dir = self.dir.to_str().unwrap().replace('/', "%2F");
                format!("postgres://postgres@{dir}/postgres")
            }
        }
    }

    /// Returns the folder of its socket.
    pub(crate) fn folder(&self) -> &std::path::Path {
        &self.dir
    }

    /// Stops the server as its administrator would.
    pub fn stop(&self) {
        self.tell("stop");
    }

    /// Stops the server as a power cut would.
    pub fn crash(&self) {
        self.tell("crash");
    }

    pub fn start_again(&self) {
        self.tell("start");
    }

    fn tell(&self, word: &str) {
        let mut guard = self.guard.lock().unwrap();
        writeln!(guard.0, "{word}").unwrap();
        let mut answer = String::new();
        guard.1.read_line(&mut answer).unwrap();
        assert_eq!(answer, "done\n");
    }

    /// Runs a script, whose statements may fail, and returns its output.
    pub fn script(&self, script: &str) -> String {
        let file = self.dir.join("script.sql");
        fs_err::write(&file, script).unwrap();
        let mut psql = self.command("");
        psql.args(["-v", "ON_ERROR_STOP=0", "-f"]).arg(&file);
        String::from_utf8(psql.output().unwrap().stdout).unwrap()
    }

    /// Runs a statement and returns the output, one row per line.
    #[track_caller]
    pub fn psql(&self, statement: &str) -> String {
        let done = self.command(statement).output().unwrap();
        assert!(done.status.success(), "{statement}: {done:?}");
        String::from_utf8(done.stdout).unwrap()
    }

    fn command(&self, statement: &str) -> Command {
        let mut command = Command::new(self.bin.join("psql"));
        command
            .args(["-X", "-q", "-A", "-t", "-v", "ON_ERROR_STOP=1", "-h"])
            .arg(&self.dir)
            .args(["-U", "postgres", "-d", "postgres", "-c", statement])
            .env("PGPASSWORD", self.password.as_deref().unwrap_or_default())
            .stdin(Stdio::null());
        if let Some(port) = self.port {
            command.args(["-p", &port.to_string()]);
        }
        command
    }
}

/// Returns the program folder of the newest installed version. Fails the test if there is none.
fn installed() -> PathBuf {
    let versions = std::fs::read_dir("/usr/lib/postgresql");
    let newest = versions
        .into_iter()
        .flatten()
        .flatten()
        .map(|entry| entry.path().join("bin"))
        .filter(|bin| bin.join("initdb").exists())
        .max_by_key(|bin| {
            let version = bin.parent().and_then(|v| v.file_name());
            version.and_then(|v| v.to_str()?.parse::<u32>().ok())
        });
    needed(newest.unwrap_or_default(), "PostgreSQL")
}
