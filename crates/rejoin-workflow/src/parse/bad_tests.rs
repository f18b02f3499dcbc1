//! Files with mistakes: each with its position and a part of the text.

mod files;
mod steps;

use files::FILES;
use steps::STEPS;

use super::*;

fn prompt_file(name: &str) -> Result<String, String> {
    match name {
        "bad.md" => Ok("one\n{{ nope( }}".to_owned()),
        _ => Err("no such file".to_owned()),
    }
}

fn expect(file: &str, position: &str, part: &str) -> Option<String> {
    let Err(mistakes) = parse(file, &prompt_file) else {
        return Some(format!(
            "{file}
  has no mistake; expected {position} {part}"
        ));
    };
    let texts: Vec<String> = mistakes.iter().map(ToString::to_string).collect();
    let prefix = if position.ends_with(':') {
        position.to_owned()
    } else {
        format!("{position}: ")
    };
    let found = texts
        .iter()
        .any(|text| text.starts_with(&prefix) && text.contains(part));
    (!found).then(|| {
        format!(
            "{file}\n  expected {position} {part}\n  found {}",
            texts.join("\n        ")
        )
    })
}

#[test]
fn every_mistake_has_its_place() {
    assert!(FILES.len() + STEPS.len() >= 60);
    let steps = STEPS.iter().map(|(text, position, part)| {
        expect(&format!("name: x\nsteps:\n{text}\n"), position, part)
    });
    let files = FILES
        .iter()
        .map(|(file, position, part)| expect(file, position, part));
    let wrong: Vec<String> = files.chain(steps).flatten().collect();
    assert!(
        wrong.is_empty(),
        "{} wrong:\n{}",
        wrong.len(),
        wrong.join("\n\n")
    );
}

#[test]
fn all_mistakes_come_at_once_in_order() {
    let file =
        "name: x\ntimeout: 5\nsteps:\n  b: { run: x }\n  a: { prompt: '{{ nope }}', needs: [c] }\n";
    let mistakes = parse(file, &prompt_file).unwrap_err();
    let lines: Vec<usize> = mistakes.iter().map(|mistake| mistake.line).collect();
    assert_eq!(lines, [2, 4, 5, 5]);
    assert_eq!(
        mistakes[3].to_string(),
        "5:38: unknown step `c`; known: a, b"
    );
}

#[test]
fn sizes_are_bounded() {
    let deep = |open: &str, close: &str| {
        format!(
            "name: x\nsteps: {}1{}",
            open.repeat(100_000),
            close.repeat(100_000)
        )
    };
    let nested: Vec<String> = (0..1_000)
        .map(|at| {
            format!(
                "{}a:
",
                " ".repeat(at)
            )
        })
        .collect();
    for (file, part) in [
        (deep("[", "]"), "recursion limit"),
        (deep("{a: ", "}"), "nested deeper"),
        (deep("- ", ""), ""),
        (nested.concat(), "nested deeper"),
        ("x".repeat((1 << 20) + 1), "larger than"),
        (
            format!(
                "name: x\nsteps:\n{}",
                (0..1_001)
                    .map(|at| format!(
                        "  s{at}: {{ run: [x] }}
"
                    ))
                    .collect::<Vec<_>>()
                    .concat()
            ),
            "more than 1000 steps",
        ),
        (
            format!(
                "name: x\nsteps: {{ a: {{ prompt: '{{{{ {}1 }}}}' }} }}",
                "1+".repeat(200_000)
            ),
            "words and signs",
        ),
        (
            format!(
                "name: x\nsteps: {{ a: {{ prompt: '{{{{ {}1 }}}}' }} }}",
                "(".repeat(100_000)
            ),
            "brackets",
        ),
        (
            format!(
                "name: x\nsteps: {{ a: {{ prompt: '{{% if 1 %}}{}' }} }}",
                "{% elif 1 %}".repeat(50_000)
            ),
            "elif",
        ),
        (
            format!(
                "name: x\nsteps: {{ a: {{ prompt: '{}' }} }}",
                "{% if 1 %}".repeat(50_000)
            ),
            "nested deeper",
        ),
    ] {
        let mistakes = parse(&file, &prompt_file).unwrap_err();
        assert!(
            mistakes.iter().any(|mistake| mistake.text.contains(part)),
            "{part}: {:?}",
            mistakes.first()
        );
    }
}

#[test]
fn billion_laughs() {
    let line = |at: usize| {
        format!(
            "a{}: &a{} [*a{at}, *a{at}, *a{at}]
",
            at + 1,
            at + 1
        )
    };
    let lines: Vec<String> = (0..30).map(line).collect();
    let file = format!(
        "a0: &a0 x
{}",
        lines.concat()
    );
    assert!(parse(&file, &prompt_file).is_err());
}
