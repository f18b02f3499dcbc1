//! Sockets in the data folder, and commands that open the store.

use rejoin_testkit::World;

use super::{REJOIN, printed};

/// Without the kernel's wall, behind which the sockets cannot even be found.
fn shell() -> World {
    let mut world = super::shell();
    world.set("REJOIN_WALL_MODE", "off");
    world
}

/// Asks a daemon through its socket; the status and the detail.
const ASK: &str = r#"
import http.client, socket, sys
class Here(http.client.HTTPConnection):
    def connect(self):
        self.sock = socket.socket(socket.AF_UNIX)
        self.sock.connect(sys.argv[1])
try:
    to = Here("localhost")
    to.request("GET", "/api/tokens")
    answer = to.getresponse()
    print(answer.status, answer.read().decode())
except OSError as error:
    print("cannot connect", error)
"#;

fn asking(world: &World) -> String {
    let script = world.root().join("ask.py");
    std::fs::write(&script, ASK).unwrap();
    let socket = world.data().join("hub.sock");
    format!("python3 {} {}", script.display(), socket.display())
}

/// However the process hides: it is found below its shim.
#[test]
fn the_socket_of_a_daemon_refuses_processes_of_a_turn() {
    let world = shell();
    let _daemon = world.serve(&[]);
    let ask = asking(&world);
    let ways = [
        ask.clone(),
        format!("env -i PATH=\"$PATH\" {ask}"),
        format!("env -i PATH=\"$PATH\" setsid -f {ask} | cat"),
    ];
    for way in ways {
        let answer = printed(&world, &way);
        assert!(answer.starts_with("403 "), "{way}: {answer}");
        assert!(answer.contains("this is a process of a turn"), "{answer}");
    }
    // The user is let in.
    let args: Vec<&str> = ask.split(' ').collect();
    let user = std::process::Command::new(args[0])
        .args(&args[1..])
        .output()
        .unwrap();
    let user = String::from_utf8_lossy(&user.stdout).into_owned();
    assert!(user.starts_with("200 "), "{user}");
}

#[test]
fn commands_in_a_turn_do_not_open_the_store() {
    let world = shell();
    let rejoin = format!("REJOIN_HOME={} {REJOIN}", world.data().display());
    for command in [
        "token create mine --scope admin",
        "serve",
        "list",
        "send hi",
    ] {
        for before in ["", "env -i HOME=/ "] {
            let line = format!("{before}env {rejoin} {command}; echo exit $?");
            let said = printed(&world, &line);
            assert!(
                said.contains("this is a process of a turn"),
                "{line}: {said}"
            );
            assert!(said.trim_end().ends_with("exit 5"), "{line}: {said}");
        }
    }
    let tokens = world.run(&["token", "list", "--json"]).ok().json();
    assert_eq!(tokens["tokens"], serde_json::json!([]), "{tokens}");
}

/// The shim takes orders, answers to questions included, from its user alone.
#[test]
fn a_turn_cannot_lead_itself() {
    const KNOCK: &str = r#"
import glob, socket, sys
for path in glob.glob(sys.argv[1] + "/turns/*/*/s"):
    door = socket.socket(socket.AF_UNIX); door.connect(path); door.settimeout(20)
    print("heard", len(door.recv(100)), "from", path)
"#;
    let world = shell();
    let script = world.root().join("knock.py");
    std::fs::write(&script, KNOCK).unwrap();
    let data = world.data();
    let said = printed(
        &world,
        &format!("python3 {} {}", script.display(), data.display()),
    );
    assert!(said.starts_with("heard 0 from "), "{said}");
}
