//! Somebody wants a new session: a flag, the configuration, `reset`, another model.

use std::fs;

use rejoin_testkit::{Chronicle, Continued, World, on_every_quick_cli};

on_every_quick_cli!(a_fresh_session_on_request, another_model_as_configured);

///
fn a_fresh_session_on_request(world: World) {
    let mut story = Chronicle::begun(world);
    story.reseeds("fresh_requested", &["--fresh-session"]);

    let config = story.world.root().join("own.toml");
    let agent = story.world.cli.agent();
    fs::write(&config, format!("[agents.{agent}]\nresume = false\n")).unwrap();
    let flags = ["--config", config.to_str().unwrap()];
    story.turn(Continued::Reseeded("fresh_requested"), &flags);
    story.resumes(&[]);

    let reset = story.world.run(&["reset", "k", "--json"]).ok().json();
    assert!(reset["retired"].as_u64().unwrap() > 0);
    story.reseeds("session_retired", &[]);
}

fn another_model_as_configured(world: World) {
    let mut story = Chronicle::begun(world);
    let [one, other] = story.world.cli.models();
    let turn = story.resumes(&["-m", other]);
    assert!(turn["model"].as_str().unwrap().contains(other), "{turn:#}");
    story.world.set("REJOIN_RESUME_MODEL_CHANGE", "reseed");
    let turn = story.reseeds("model_changed", &[]);
    assert!(turn["model"].as_str().unwrap().contains(one), "{turn:#}");
    assert_eq!(turn["policy"]["model_change"], "reseed");
}
