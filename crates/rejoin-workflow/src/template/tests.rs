use serde_json::json;

use super::*;

fn template(source: &str) -> Template {
    Template::new(source)
        .unwrap_or_else(|faults| panic!("{source}: {faults:?}"))
        .0
}

fn expression(source: &str) -> Expression {
    Expression::new(source)
        .unwrap_or_else(|faults| panic!("{source}: {faults:?}"))
        .0
}

fn scope() -> Scope {
    let step = StepValues {
        status: "succeeded".into(),
        text: "well".into(),
        output: json!({ "verdict": "change", "count": 3, "list": ["a", "b"], "no": null }),
        cost_usd: Some(0.5),
        ..StepValues::default()
    };
    let failed = StepValues {
        status: "failed".into(),
        exit_code: Some(2),
        ..StepValues::default()
    };
    let each = StepValues {
        items: Some(vec![step.clone()]),
        ..StepValues::default()
    };
    Scope {
        inputs: json!({ "pr": "7", "files": ["x.rs", "y.rs"] })
            .as_object()
            .cloned()
            .unwrap(),
        steps: [
            ("a", step),
            ("b-c", failed.clone()),
            ("run", failed),
            ("e", each),
        ]
        .map(|(id, step)| (id.to_owned(), step))
        .into(),
        item: Some(json!({ "name": "n" })),
        index: Some(4),
        run_id: "r1".into(),
    }
}

#[test]
fn values_and_filters() {
    for (source, expected) in [
        ("{{ inputs.pr }}", "7"),
        ("a\n", "a\n"),
        (
            "{{ steps.a.text | upper }} {{ steps['a'].status }}",
            "WELL succeeded",
        ),
        (
            "{{ steps.a.output }}",
            r#"{"count":3,"list":["a","b"],"no":null,"verdict":"change"}"#,
        ),
        (
            "{{ steps.a.output.list }} {{ steps.a.output.count + 1 }}",
            r#"["a","b"] 4"#,
        ),
        ("{{ steps.a.output.list | join(', ') }}", "a, b"),
        (
            "{{ steps.e['items'][0].text }} {{ steps.e.items | length }}",
            "well 1",
        ),
        (
            "{% for file in inputs.files %}{{ loop.index }}{{ file }};{% endfor %}",
            "1x.rs;2y.rs;",
        ),
        (
            "{% if steps['b-c'].exit_code == 2 %}yes{% else %}no{% endif %}",
            "yes",
        ),
        ("{{ item.name }}{{ index }}{{ run.id }}", "n4r1"),
        (
            "{{ steps.a.verdict }} {{ true }} {{ steps.a.cost_usd }}",
            "null true 0.5",
        ),
        ("{{ steps.a.output.absent | default('none') }}", "none"),
        (
            "{{ 'a\nb' | indent(2) }} {{ 'aXa' | replace('X', '-') }}",
            "a\n  b a-a",
        ),
        (
            "{% raw %}{{ x }}{% endraw %} {{ steps.a.text | tojson }}",
            "{{ x }} \"well\"",
        ),
        ("{# a comment #}<&>", "<&>"),
        (
            "{{ 'absent' in steps.a.output }} {{ 'no' in steps.a.output }}",
            "false true",
        ),
        (
            "{{ 'absent' not in steps.a.output }} {{ 'a' is in steps.a.output.list }}",
            "true true",
        ),
        (
            "{{ steps.e.items | map(attribute='cost_usd') | sum }} {{ [1, 2] | sum }}",
            "0.5 3",
        ),
        (
            "{{ steps.e.items | selectattr('absent') | list | length }}",
            "0",
        ),
        (
            "{{ inputs.files | map('upper') | join(' ') }} {{ 2 is number }}",
            "X.RS Y.RS true",
        ),
    ] {
        assert_eq!(
            template(source).render(&scope()).as_deref(),
            Ok(expected),
            "{source}"
        );
    }
}

#[test]
fn expressions() {
    for (source, expected) in [
        ("steps.a.output.verdict == \"change\"", json!(true)),
        ("{{ inputs.files }}", json!(["x.rs", "y.rs"])),
        (" inputs.files | length > 1 and not failed(a)", json!(true)),
        ("failed('b-c')", json!(true)),
        ("failed(\"run\") and run.id == 'r1'", json!(true)),
        ("always()", json!(true)),
        ("steps.a.output.absent is defined", json!(false)),
        (
            "steps.a.output",
            json!({ "verdict": "change", "count": 3, "list": ["a", "b"], "no": null }),
        ),
        ("true", json!(true)),
    ] {
        assert_eq!(
            expression(source).evaluate(&scope()),
            Ok(expected),
            "{source}"
        );
    }
    assert_eq!(expression("inputs.files").is_true(&scope()), Ok(true));
    assert_eq!(expression("steps.a.output.no").is_true(&scope()), Ok(false));
    assert!(
        expression("failed(a)").looks_at_failures()
            && expression("1 == 1 or always()").looks_at_failures()
    );
    assert!(!expression("steps.a.status == 'failed'").looks_at_failures());
    assert_eq!(
        expression("{{ a.b }}".replace("a.b", "inputs.pr").as_str()).source(),
        "inputs.pr"
    );
}

#[test]
fn undefined_is_an_error() {
    for source in [
        "steps.a.output.absent == 1",
        "inputs.absent",
        "steps.z.text",
        "steps.a.output.absent",
        "inputs.files[9]",
    ] {
        assert!(expression(source).evaluate(&scope()).is_err(), "{source}");
        let error = template(&format!("{{{{ {source} }}}}"))
            .render(&scope())
            .unwrap_err();
        assert!(!error.is_empty() && !error.contains('\n'), "{error}");
    }
    let error = expression("steps.a.output.absent == 1")
        .evaluate(&scope())
        .unwrap_err();
    assert!(
        error.contains("there is no value `absent`; there are: count, list"),
        "{error}"
    );
    assert!(expression("item").evaluate(&Scope::default()).is_err());
}

#[test]
fn every_filter_and_test_is_known_to_the_engine() {
    for name in filters::FILTERS {
        let error = engine::evaluate(&format!("1 | {name}"), minijinja::Value::from(())).err();
        assert!(
            !error
                .clone()
                .is_some_and(|error| error.contains("unknown filter")),
            "{error:?}"
        );
    }
    for name in filters::TESTS {
        let error = engine::evaluate(&format!("1 is {name}"), minijinja::Value::from(())).err();
        assert!(
            !error
                .clone()
                .is_some_and(|error| error.contains("unknown test")),
            "{error:?}"
        );
    }
}

#[test]
fn a_deep_expression_fits_a_small_stack() {
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let read = || {
        for source in [
            "1".to_owned() + &"+1".repeat(70),
            "inputs".to_owned() + &".a".repeat(70),
            "1".to_owned() + &"|int".repeat(70),
            "(".repeat(20) + "1" + &")".repeat(20),
            "not ".repeat(149) + "1",
        ] {
            if let Ok((found, _)) = Expression::new(&source) {
                drop(found.evaluate(&Scope::default()));
            }
            if let Ok((found, _)) =
                Template::new(&("{% if 1 %}".repeat(20) + &"{% endif %}".repeat(20)))
            {
                drop(found.render(&Scope::default()));
            }
        }
    };
    small.spawn(read).unwrap().join().unwrap();
}
