use super::*;

fn flow(steps: &str) -> Workflow {
    crate::parse(
        &format!("name: x\nsteps:\n{steps}"),
        &|_| Err(String::new()),
    )
    .unwrap()
}

#[test]
fn order_follows_needs_then_the_file() {
    let flow = flow(concat!(
        "  late: { run: [a], needs: [first] }\n",
        "  free: { run: [a] }\n",
        "  first: { run: [a] }\n",
        "  end: { run: [a], needs: [free, late] }\n",
    ));
    assert_eq!(flow.order(), [1, 2, 0, 3]);
    assert_eq!(flow.ancestors(3), BTreeSet::from([0, 1, 2]));
    assert_eq!(flow.ancestors(1), BTreeSet::new());
}

#[test]
fn a_loop_holds_all_steps_between() {
    let flow = flow(concat!(
        "  before: { run: [a] }\n",
        "  first: { run: [a], needs: [before] }\n",
        "  left: { run: [a], needs: [first] }\n",
        "  right: { run: [a], needs: [first] }\n",
        "  aside: { run: [a], needs: [first] }\n",
        "  last: { run: [a], needs: [left, right], loop: { back_to: first, while: 'true', max: 2 } }\n",
    ));
    assert_eq!(flow.loop_body(5), BTreeSet::from([1, 2, 3, 5]));
    assert_eq!(flow.loop_body(0), BTreeSet::new());
}

#[test]
fn a_cycle_is_a_path() {
    assert_eq!(cycle(&[vec![1], vec![2], vec![1]]), Some(vec![1, 2, 1]));
    assert_eq!(cycle(&[vec![0]]), Some(vec![0, 0]));
    assert_eq!(cycle(&[vec![1, 2], vec![2], vec![]]), None);
}
