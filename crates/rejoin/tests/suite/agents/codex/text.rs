//! A message is data (promise 11). Headless, this CLI knows no `/command` and no `@file`; but a
//! `$name` brings in the skill of that name, and only what has a plugin could be meant by `[@name]`.

use std::fs;

use rejoin_testkit::{Chronicle, Continued, World, user};
use serde_json::Value;

use super::world;

const SKILL: &str = "word-in-the-skill";
const FILE: &str = "word-in-the-file";

fn prepared(world: World) -> World {
    let folder = world.home().join(".codex/skills/canary");
    fs::create_dir_all(&folder).unwrap();
    let text = format!("---\nname: canary\ndescription: sings\n---\n{SKILL}\n");
    fs::write(folder.join("SKILL.md"), text).unwrap();
    fs::write(world.work().join("inside.txt"), FILE).unwrap();
    world
}

/// All that the model was ever sent.
fn asked(world: &World) -> String {
    let requests = world.model.requests();
    requests.iter().map(|r| r.body.to_string()).collect()
}

#[track_caller]
fn assert_only_text(story: &Chronicle) {
    let asked = asked(&story.world);
    assert!(!asked.contains(SKILL) && !asked.contains(FILE));
    let files = fs::read_dir(story.world.work()).unwrap().count();
    assert_eq!(files, 1, "only inside.txt");
}

/// As it stands inside a JSON string, but for the joiners.
fn shows(story: &Chronicle, text: &str) -> bool {
    let quoted = Value::from(text).to_string();
    let shown = story
        .request()
        .history()
        .to_string()
        .replace('\u{2060}', "");
    shown.contains(&quoted[1..quoted.len() - 1])
}

#[test]
fn nothing_in_a_message_is_taken_for_a_command_or_a_file() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::new(prepared(world));
    let path = story.world.home().join(".codex/skills/canary/SKILL.md");
    let link = format!("[$canary]({})", path.display());
    let starts = [
        "/clear $canary",
        "--last `$canary` x$canary \\$canary",
        "resume - !touch ran.txt",
        "@inside.txt @./inside.txt [@canary](plugin://canary)",
        &link,
    ];
    for (n, start) in (1..).zip(starts) {
        let how = if n == 1 {
            Continued::Started
        } else {
            Continued::Resumed
        };
        let text = format!("{start} {} #s:a{n}", user(n));
        story.says(how, &text, &[]);
        assert!(shows(&story, &text), "{text}");
    }
    // In a transcript and in a catch-up.
    let retold = Continued::Reseeded("fresh_requested");
    story.says(
        retold,
        &format!("{} $canary #s:a6", user(6)),
        &["--fresh-session"],
    );
    assert!(shows(&story, "`$canary` x$canary"));
    story.fails_saying(&format!("$canary {} #s:e400", user(7)), &[]);
    let told = story.says(
        Continued::Resumed,
        &format!("$canary {} #s:a8", user(8)),
        &[],
    );
    assert_eq!(told["sent"]["caught_up"], 1);
    assert_only_text(&story);
    let shown = story.world.run(&["show", "k", "--json"]).ok().json();
    let first = &shown["messages"][0]["text"];
    assert_eq!(*first, format!("/clear $canary {} #s:a1", user(1)));
}

/// `--raw`: the user's own message has its meaning for the CLI, what others said has not.
#[test]
fn raw_means_skills_and_no_files() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::begun(prepared(world));
    let text = format!("use $canary @inside.txt {} #s:a2", user(2));
    story.says(Continued::Resumed, &text, &["--raw"]);
    assert!(asked(&story.world).contains(SKILL));
    assert!(!asked(&story.world).contains(FILE));
    // What it brought in is in the session, and the session still serves.
    story.resumes(&[]);
}

#[test]
fn long_and_odd_prompts_arrive_whole() {
    let Some(world) = world() else { return };
    let mut story = Chronicle::new(world);
    story.says(
        Continued::Started,
        &format!("\u{feff}-x {} #s:a1", user(1)),
        &[],
    );
    let odd =
        "é 日本 \u{1f980} e\u{301} \u{202e}rtl\u{202c} \u{2028} \t \\u0041 \u{7f} \r\n\"'`$(id)";
    let long = format!("{odd} {} {} #s:a2", "lorem ipsum ".repeat(25_000), user(2));
    let flags = ["send", "--json", "-k", "k", "-"];
    let done = story.world.run_with_stdin(&flags, long.as_bytes());
    assert_eq!(done.ok().json()["verdict"], "resumed");
    assert!(shows(&story, &long));
    assert_eq!(story.world.say(3, &[])["verdict"], "resumed");
}
