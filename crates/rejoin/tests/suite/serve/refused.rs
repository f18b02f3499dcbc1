//! What is refused over HTTP, in the words of the command line.

use std::fmt::Write as _;

use insta::assert_snapshot;
use rejoin_testkit::{Answer, World};
use serde_json::{Value, json};

use super::{demo, here};

/// As the table of errors has it, and the answer as it came.
fn said(answer: &Answer) -> String {
    let problem = answer.json();
    let code = problem["code"].as_str().unwrap();
    let table = include_str!("../../../../../docs/errors.md");
    let row = table
        .lines()
        .find(|row| row.starts_with(&format!("| `{code}` |")));
    let exit = row.unwrap().split('|').nth(2).unwrap().trim();
    assert!(
        answer.head.contains("application/problem+json"),
        "{answer:?}"
    );
    assert_eq!(problem["status"], answer.status);
    format!(
        "exit {exit}, {code}\n{} {}\ntry: {}",
        answer.status,
        problem["detail"].as_str().unwrap(),
        problem["try"].as_str().unwrap()
    )
}

#[test]
fn who_may_what() {
    let world = demo();
    let daemon = world.serve(&[]);
    let c = daemon.say("k", "hello", &[here(&world)]);
    let c = format!(
        "/api/conversations/{}",
        c["conversation_id"].as_str().unwrap()
    );
    let none = daemon.call("GET", "/api/conversations", &["Authorization: -"], None);
    assert!(
        none.head
            .to_lowercase()
            .contains("www-authenticate: bearer")
    );
    assert_snapshot!(said(&none), @r"
    exit 8, unauthorized
    401 a token is needed: Authorization: Bearer …
    try: rejoin login URL
    ");
    let wrong = daemon.call(
        "GET",
        "/api/conversations",
        &["Authorization: Bearer nonsense"],
        None,
    );
    assert_snapshot!(said(&wrong), @r"
    exit 8, unauthorized
    401 the token is not known here, was revoked or has expired
    try: rejoin login URL
    ");
    let runner = daemon.post("/api/tokens", &json!({"name": "r", "scope": "runner"}));
    assert_snapshot!(said(&runner), @r"
    exit 2, usage
    400 this version of rejoin has no runners on other machines, so nothing takes a token with the scope `runner`
    try: rejoin token create NAME --scope send
    ");
    let made = daemon
        .post("/api/tokens", &json!({"name": "reader", "scope": "read"}))
        .ok();
    let reader = format!("Authorization: Bearer {}", made["token"].as_str().unwrap());
    assert_eq!(
        daemon
            .call("GET", "/api/conversations", &[&reader], None)
            .status,
        200
    );
    let body = json!({"text": "hello"});
    let writes = daemon.call("POST", &format!("{c}/messages"), &[&reader], Some(&body));
    assert_snapshot!(said(&writes), @r"
    exit 5, forbidden
    403 the token `reader` may read, and this needs send
    try: rejoin token create NAME --scope send
    ");
    let host = daemon.call("GET", "/api/conversations", &["Host: evil.example"], None);
    assert_snapshot!(said(&host), @r"
    exit 5, forbidden
    403 the daemon is not known by the host name of this request
    try: [serve] allow_hosts, or public_url, in the configuration
    ");
    let origin = daemon.call(
        "GET",
        "/api/conversations",
        &["Origin: https://evil.example"],
        None,
    );
    assert_snapshot!(said(&origin), @r"
    exit 5, forbidden
    403 requests from pages of other sites are not taken
    try: rejoin token create NAME --scope send
    ");
    world.run(&["token", "revoke", "reader"]).ok();
    assert_eq!(
        daemon
            .call("GET", "/api/conversations", &[&reader], None)
            .status,
        401
    );
    daemon
        .call("PATCH", &c, &[], Some(&json!({"continue": "ask"})))
        .ok();
    let asks = daemon.post(&format!("{c}/messages"), &body);
    assert_snapshot!(masked(&world, &said(&asks)), @r#"
    exit 4, confirm
    409 tmqx is set to ask before it is continued; this message was not kept
    try: rejoin send -c tmqx --confirm …, or "confirm": true over HTTP
    "#);
    daemon
        .call("PATCH", &c, &[], Some(&json!({"continue": "never"})))
        .ok();
    let never = daemon.post(&format!("{c}/messages"), &body);
    assert_snapshot!(masked(&world, &said(&never)), @r"
    exit 5, never_continues
    403 tmqx is set never to be continued; this message was not kept
    try: rejoin set tmqx continue=auto
    ");
}

#[test]
fn too_much() {
    let world = demo();
    let daemon = world.serve(&[]);
    let huge = format!(
        "POST /api/send HTTP/1.1\r\nHost: {}\r\nAuthorization: Bearer {}\r\nContent-Length: 1073741824\r\n\r\n{{",
        daemon.address, daemon.token
    );
    let large = daemon.raw(huge.as_bytes());
    assert_snapshot!(said(&large), @r"
    exit 2, too_large
    413 a request may have 16 MiB at most
    try: a shorter message, or files in the working folder
    ");
    let mut last = None;
    for _ in 0..25 {
        last = Some(daemon.call("GET", "/api/inbox", &["Authorization: Bearer guess"], None));
    }
    let last = last.unwrap();
    assert!(last.head.to_lowercase().contains("retry-after"), "{last:?}");
    assert_snapshot!(said(&last), @r"
    exit 9, rate_limited
    429 too many tokens from this address were refused; wait a minute
    try: the same later
    ");
}

/// Bad input gets one clear sentence, and nothing is kept.
#[test]
fn what_makes_no_sense() {
    let world = demo();
    let daemon = world.serve(&[]);
    let work = world.work();
    let work = work.to_str().unwrap();
    let nowhere = world.root().join("no/such/folder");
    let bodies = [
        json!({"text": ""}),
        json!({"text": "x", "permision": "full"}),
        json!({"text": "x", "permission": "everything"}),
        json!({"text": "x", "workdir": "relative"}),
        json!({"text": "x", "workdir": nowhere}),
        json!({"text": "x", "key": "a\nb", "workdir": work}),
        json!({"text": "x", "key": "k", "conversation_id": "c"}),
        json!({"text": "x", "workdir": work, "tier": "observe"}),
        json!({"text": "x", "workdir": work, "max_cost_usd": -1}),
        json!({"text": "x\u{0}", "workdir": work}),
        json!("text"),
        json!({"text": 7}),
    ];
    let mut page = String::new();
    for body in bodies {
        let answer = daemon.post("/api/send", &body);
        let problem: Value = answer.json();
        let detail = problem["detail"].as_str().unwrap();
        writeln!(page, "{} {detail}", answer.status).unwrap();
    }
    let agent = daemon.post(
        "/api/send",
        &json!({"text": "x", "agent": "nobody", "workdir": work}),
    );
    let detail = agent.json()["detail"].as_str().unwrap().to_owned();
    writeln!(page, "{} {detail}", agent.status).unwrap();
    assert_snapshot!(masked(&world, &page), @r#"
    400 the message is empty
    400 there is no field `permision`; did you mean `permission`?
    400 permission is one of read-only, edit, full, ask
    400 the working folder `relative` is not an absolute path
    400 the working folder /world/no/such/folder does not exist
    400 a key has 1 to 200 characters and no control characters
    400 name conversation_id or key, not both
    400 no tiers are configured
    400 max_cost_usd is an amount in dollars above 0
    400 the message contains a NUL character
    400 the body is not what is expected here: invalid type: string "text", expected struct MessageRequest at line 1 column 6
    400 the body is not what is expected here: invalid type: integer `7`, expected a string at line 1 column 9
    404 there is no agent `nobody`; there are claude, codex, gemini, opencode, demo
    "#);
    assert_eq!(
        daemon.get("/api/conversations").ok()["conversations"],
        json!([])
    );
    assert_eq!(daemon.get("/api/nothing").status, 404);
    let not_so = daemon.call("PUT", "/api/send", &[], None);
    assert_eq!(
        (not_so.status, &not_so.json()["status"]),
        (405, &json!(405))
    );
    assert_eq!(daemon.get("/api/conversations?state=sleeping").status, 400);
    assert_eq!(daemon.get("/api/conversations?cursor=x").status, 400);
    assert_eq!(daemon.get("/api/conversations?limit=x").status, 400);
}

/// Loopback by default; elsewhere only with a token and with folders.
#[test]
fn it_does_not_listen_to_everybody() {
    let mut world = demo();
    let said = |world: &World| {
        let done = world.run(&["serve", "--listen", "0.0.0.0:0"]);
        format!("{}: {}", done.code, done.stderr)
    };
    assert_snapshot!(said(&world), @r"
    5: error: 0.0.0.0:0 can be reached from elsewhere, and there is no token yet
      try: rejoin token create NAME
    ");
    world.run(&["token", "create", "t"]).ok();
    assert_snapshot!(said(&world), @r#"
    5: error: 0.0.0.0:0 can be reached from elsewhere, and no working folders are set
      try: [serve] roots = ["/where/agents/may/work"] in the configuration
    "#);
    world.set("REJOIN_SERVE_ROOTS", world.work().to_str().unwrap());
    let daemon = world.serve(&[]);
    let elsewhere = json!({"text": "x", "workdir": world.root().to_str().unwrap()});
    let refused = daemon.post("/api/send", &elsewhere);
    assert_eq!(
        (refused.status, refused.json()["code"].as_str()),
        (403, Some("forbidden"))
    );
    let link = world.work().join("out");
    std::os::unix::fs::symlink(world.root(), &link).unwrap();
    let through = json!({"text": "x", "workdir": link.to_str().unwrap()});
    assert_eq!(daemon.post("/api/send", &through).status, 403);
    daemon.say("k", "inside", &[here(&world)]);
    let second = world.run(&["serve", "--listen", "127.0.0.1:0"]);
    assert_snapshot!(format!("{}: {}", second.code, second.stderr), @r"
    4: error: a daemon is running on this data folder already
      try: use that one, or another REJOIN_HOME
    ");
    let wrong = world.run(&["serve", "--listen", "everywhere"]);
    assert_snapshot!(format!("{}: {}", wrong.code, wrong.stderr), @r"
    2: error: `everywhere` is not an address such as 127.0.0.1:7377
      try: rejoin serve --listen 127.0.0.1:7377
    ");
}

fn masked(world: &World, text: &str) -> String {
    super::super::terminal::masked(world, text)
}
