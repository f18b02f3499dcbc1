//! PgBouncer in front of a test's own server. Like the server, it ends with the test process.

use std::os::unix::process::CommandExt as _;
use std::process::{Child, Command, Stdio};

use crate::clis::needed;
use crate::pg::PgServer;

/// `$1`: its folder. PgBouncer stops when the stdin of this shell ends.
const GUARD: &str = r#"
trap '' INT TERM HUP
cd "$1" || exit 1
as() { if [ "$(id -u)" = 0 ]; then runuser -u postgres -- "$@"; else "$@"; fi; }
if [ "$(id -u)" = 0 ]; then chown -R postgres "$1"; fi
as /usr/sbin/pgbouncer -q "$1/ini" >log 2>&1 &
cat >/dev/null
as sh -c "trap - INT; kill -TERM $(cat pid)"
wait
cd /; rm -rf "$1"
"#;

/// A pooler that lives as long as this value.
pub struct PgBouncer {
    port: u16,
    /// Exits when its stdin ends.
    _shell: Child,
}

impl PgBouncer {
    /// Starts PgBouncer. Never returns `None`: a test without PgBouncer fails. `mode`: `session` or
    /// `transaction`.
    pub fn before(server: &PgServer, mode: &str, more: &str) -> Option<Self> {
        needed("/usr/sbin/pgbouncer".into(), "PgBouncer");
        let free = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let port = free.local_addr().unwrap().port();
        drop(free);
        let folder = tempfile::Builder::new().prefix("rj-pb-").tempdir_in("/tmp");
        let folder = folder.unwrap().keep();
        let ini = format!(
            "[databases]\n* = host={} user=postgres\n[pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\n\
             unix_socket_dir =\nauth_type = any\npool_mode = {mode}\npidfile = {}/pid\n{more}\n",
            server.folder().display(),
            folder.display(),
        );
        std::fs::write(folder.join("ini"), ini).unwrap();
        let shell = Command::new("sh")
            .args(["-c", GUARD, "guard"])
            .arg(&folder)
            .stdin(Stdio::piped())
            .process_group(0)
            .spawn()
            .unwrap();
        crate::wait_for("PgBouncer", 20, || {
            std::net::TcpStream::connect(("127.0.0.1", port)).ok()
        });
        Some(Self {
            port,
            _shell: shell,
        })
    }

    pub fn url(&self) -> String {
        format!("postgres://postgres@127.0.0.1:{}/postgres", self.port)
    }
}
