//! Hostile values stay data; texts stay within their bounds.

use super::*;

fn values() -> Vec<String> {
    let mut values: Vec<String> = [
        "it's \"quoted\"",
        "line\nline\r\n",
        "$(rm -rf /)",
        "`id`",
        "; ls #",
        "{{ inputs.x }}",
        "{% for x in [1] %}{{ x }}{% endfor %}",
        "{# comment #}",
        "{{ 1 / 0 }}",
        "&anchor *alias !!tag",
        "- a: b\n- c",
        "---\nname: y\n",
        "nul\0nul",
        "<script>&amp;",
        "\\n\\u0041\\",
        "%s %d %n",
        "../../etc/passwd",
        "--flag",
        "\u{202e}right\u{feff}",
        "\u{1b}[2J",
        "}}",
        "{% endif %}",
        "${HOME} $HOME %PATH%",
    ]
    .map(str::to_owned)
    .into();
    values.push("x{{".repeat(350_000));
    values
}

#[test]
fn values_appear_verbatim_once() {
    let source = "[{{ steps.a.text }}|{% if steps.a.text %}{{ inputs.x | trim('') }}{% endif %}]";
    let template = Template::new(source).unwrap().0;
    for value in values() {
        let mut scope = Scope::default();
        scope.inputs.insert("x".into(), value.clone().into());
        scope.steps.insert(
            "a".into(),
            StepValues {
                text: value.clone(),
                ..StepValues::default()
            },
        );
        assert!(
            template.render(&scope) == Ok(format!("[{value}|{value}]")),
            "{}",
            &value[..20.min(value.len())]
        );
        let expression = Expression::new("inputs.x == steps.a.text and inputs.x")
            .unwrap()
            .0;
        assert!(expression.evaluate(&scope) == Ok(value.into()));
    }
}

#[test]
fn a_key_of_an_answer_cannot_replace_a_name() {
    let mut scope = Scope {
        run_id: "r".into(),
        ..Scope::default()
    };
    let output = serde_json::json!({ "run": { "id": "other" }, "always": false, "__class__": 1 });
    scope.steps.insert(
        "a".into(),
        StepValues {
            output,
            ..StepValues::default()
        },
    );
    let template = Template::new("{{ run.id }}{{ steps.a.output.run.id }}")
        .unwrap()
        .0;
    assert_eq!(template.render(&scope).as_deref(), Ok("rother"));
}

#[test]
fn neither_files_nor_environment() {
    for source in [
        "{% include '/etc/passwd' %}",
        "{% extends 'x' %}",
        "{% import 'x' as y %}",
        "{% from 'x' import y %}",
        "{% macro m() %}{% endmacro %}",
        "{% call m() %}{% endcall %}",
        "{% set x = 1 %}",
        "{% with x = 1 %}{% endwith %}",
        "{% do failed('a') %}",
        "{% filter upper %}x{% endfilter %}",
        "{% autoescape true %}{% endautoescape %}",
        "{% block b %}{% endblock %}",
        "{{ debug() }}",
        "{{ namespace() }}",
        "{{ dict() }}",
        "{{ open('/etc/passwd') }}",
        "{{ inputs.x.format(1) }}",
        "{{ inputs.x | pprint }}",
        "{{ inputs.x | attr('y') }}",
        "{{ inputs.x | map(inputs.y) }}",
        "{{ inputs.x | map('replace', 'a', inputs.y) }}",
        "{{ inputs.x | map('map', 'indent', 99999) }}",
        "{{ inputs.x | map(*inputs.y) }}",
        "{{ inputs.x | join(**inputs.y) }}",
        "{{ inputs }}",
        "{{ steps }}",
        "{{ steps[inputs.x].text }}",
        "{{ 2 ** 9 }}",
    ] {
        assert!(Template::new(source).is_err(), "{source}");
    }
    for name in [
        "env", "environ", "self", "secrets", "config", "os", "process", "x",
    ] {
        let (template, scan) = Template::new(&format!("{{{{ {name}.HOME }}}}")).unwrap();
        assert!(matches!(&scan.references[0].0, Reference::Unknown(found) if found == name));
        assert!(template.render(&Scope::default()).is_err());
    }
}

#[test]
fn a_rendered_text_is_bounded() {
    let mut scope = Scope::default();
    scope.inputs.insert("x".into(), "a".repeat(1 << 20).into());
    scope.inputs.insert("list".into(), vec![0; 10_000].into());
    for source in [
        "{% for i in inputs.list %}{{ inputs.x }}{% endfor %}",
        "{{ inputs.x | replace('a', inputs.x) }}",
        "{{ inputs.list | join(inputs.x) }}",
        "{{ inputs.x | replace('a', '\n') | indent(1000000) }}",
    ] {
        let error = Template::new(source).unwrap().0.render(&scope).unwrap_err();
        assert!(error.contains("larger than 16 MiB"), "{source}: {error}");
    }
    let long = "{% for i in inputs.list %}{% for j in inputs.list %}{% endfor %}{% endfor %}";
    let error = Template::new(long).unwrap().0.render(&scope).unwrap_err();
    assert_eq!(error, "the text takes too long to render");
}
