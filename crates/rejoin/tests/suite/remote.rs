//! Commands through a daemon: behind the socket in the data folder, and at an address.

mod elsewhere;
mod killed;
mod login;
mod mask;
mod refused;
mod samples;
mod socket;
mod story;

use rejoin_testkit::{Daemon, Done, World};

const REJOIN: &str = env!("CARGO_BIN_EXE_rejoin");

/// With the demo agent as the default, and turns that wait for an answer wherever they are asked.
fn demo() -> World {
    let mut world = World::new(REJOIN);
    world.set("REJOIN_DEFAULT_AGENT", "demo");
    world.set("REJOIN_QUESTIONS_ASK", "always");
    // As the token is called, so that both ways have one name for us.
    world.set("USER", "test");
    world
}

/// Which hub a command talks to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Way {
    /// The one of its own process.
    None,
    /// The daemon on the same data folder.
    Socket,
    /// A daemon at an address, with a token.
    Address,
}

/// A world, and the daemon in it that commands go to.
struct Place {
    world: World,
    daemon: Option<Daemon>,
}

impl Place {
    fn new(way: Way) -> Self {
        let world = demo();
        let daemon = match way {
            Way::None => None,
            Way::Socket | Way::Address => Some(world.serve(&[])),
        };
        let mut place = Self { world, daemon };
        if let (Way::Address, Some(daemon)) = (way, &place.daemon) {
            let (url, token) = (format!("http://{}", daemon.address), daemon.token.clone());
            place.world.set("REJOIN_HUB", &url);
            place.world.set("REJOIN_TOKEN", &token);
        }
        place
    }

    fn run(&self, args: &[&str]) -> Done {
        self.world.run(args)
    }

    #[track_caller]
    fn end(self) {
        if let Some(daemon) = self.daemon {
            assert_eq!(daemon.stop(), 0);
        }
        self.world.assert_quiet();
    }
}
