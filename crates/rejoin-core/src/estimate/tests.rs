use super::*;

/// A turn at $3 per million tokens of new input, $0.30 cached, $15 of output.
fn spent(new: u64, cached: u64, output: u64) -> PastTurn {
    let micros = 3 * new + 15 * output + cached * 3 / 10;
    PastTurn {
        usage: Usage {
            input: 10.min(new),
            cache_write: new - 10.min(new),
            cache_read: cached,
            output,
            ..Usage::default()
        },
        cost: Micros(micros as i64),
        resumed: cached > 0,
        held: Some(new + cached),
    }
}

/// Three turns, newest first.
fn three() -> [PastTurn; 3] {
    [
        spent(1_000, 15_000, 2_000),
        spent(1_000, 14_000, 200),
        spent(14_000, 0, 500),
    ]
}

#[test]
fn three_turns_tell_all_three_prices() {
    let prices = Prices::implied(&three()).unwrap();
    assert_eq!(prices.new, 3 * BILLION);
    assert_eq!(prices.output, 15 * BILLION);
    assert_eq!(prices.cached, Some(BILLION * 3 / 10));
    let turn = three()[0];
    // 15,000 tokens would have been new: $2.70 per million more.
    assert_eq!(
        prices.fresh(&turn, 15_000),
        Some(Micros(turn.cost.0 + 40_500))
    );
    // A turn with tools reads its history many times. Only the first read would have been new.
    assert_eq!(
        prices.fresh(&turn, 5_000),
        Some(Micros(turn.cost.0 + 13_500))
    );
}

#[test]
fn a_resume_would_have_read_what_was_told() {
    let prices = Prices::implied(&three()).unwrap();
    let told = spent(20_000, 0, 400);
    assert_eq!(
        prices.resumed(&told, 16_000),
        Some(Micros(told.cost.0 - 43_200))
    );
    assert_eq!(
        prices.resumed(&told, 90_000),
        Some(Micros(told.cost.0 - 54_000))
    );
}

#[test]
fn the_next_turn_is_one_call_with_an_answer_of_middle_length() {
    let turns = three();
    let prices = Prices::implied(&turns).unwrap();
    let output = 15 * (2_000 + 200 + 500) / 3;
    assert_eq!(
        prices.next(Continuation::Resume, 100, &turns),
        Some(Micros(16_000 * 3 / 10 + 300 + output))
    );
    assert_eq!(
        prices.next(Continuation::Anew, 100, &turns),
        Some(Micros(48_000 + output))
    );
    assert_eq!(
        prices.next(Continuation::Anew, 20_000, &turns),
        Some(Micros(60_000 + output))
    );
}

/// A common price for input and output is a good approximation while one of them dominates.
#[test]
fn two_turns_tell_two_prices() {
    let turns = [spent(500, 14_000, 100), spent(14_000, 0, 100)];
    let prices = Prices::implied(&turns).unwrap();
    assert_eq!(prices.new, prices.output);
    let fresh = prices.fresh(&turns[0], 14_000).unwrap().0;
    let truth = turns[0].cost.0 + 14_000 * 27 / 10;
    assert!((fresh - truth).abs() * 20 < truth, "{fresh} {truth}");
}

#[test]
fn one_turn_tells_nothing_of_a_cache() {
    let first = [spent(14_000, 0, 100)];
    let prices = Prices::implied(&first).unwrap();
    assert_eq!(prices.next(Continuation::Resume, 10, &first), None);
    assert!(prices.next(Continuation::Anew, 10, &first).is_some());
    assert_eq!(prices.resumed(&first[0], 9), None);
    // An agent that resumes and never reads from a cache pays for everything again.
    let again = PastTurn {
        resumed: true,
        ..spent(15_000, 0, 100)
    };
    let turns = [again, first[0]];
    let prices = Prices::implied(&turns).unwrap();
    let next = prices.next(Continuation::Resume, 0, &turns).unwrap();
    assert!((next.0 - again.cost.0).abs() < 100, "{next:?}");
}

#[test]
fn what_does_not_explain_the_turns_is_no_price() {
    assert_eq!(Prices::implied(&[]), None);
    let free = PastTurn {
        cost: Micros(0),
        ..spent(100, 0, 10)
    };
    let prices = Prices::implied(&[free]).unwrap();
    assert_eq!(
        prices.next(Continuation::Anew, 50, &[free]),
        Some(Micros(0))
    );
    let nothing = PastTurn {
        usage: Usage::default(),
        ..free
    };
    assert_eq!(Prices::implied(&[nothing]), None);
    // The same tokens at ten times the price: the conditions have changed.
    let mut dear = three();
    dear[0].cost.0 = 10;
    dear[2].cost.0 *= 10;
    assert_eq!(Prices::implied(&dear), None);
    // Constantly changing prices: the mean is not the price of any turn.
    let cost = |micros| PastTurn {
        cost: Micros(micros),
        ..spent(10_000, 0, 100)
    };
    let restless = [cost(30_000), cost(120_000), cost(30_000), cost(120_000)];
    assert_eq!(Prices::implied(&restless), None);
    assert!(Prices::implied(&restless.map(|_| cost(30_000))).is_some());
    // A cache that costs more than it saves.
    let odd = [
        PastTurn {
            cost: Micros(900_000),
            ..spent(10, 10_000, 1)
        },
        spent(14_000, 0, 1),
    ];
    assert_eq!(Prices::implied(&odd), None);
    let beyond = PastTurn {
        usage: Usage {
            input: u64::MAX,
            output: u64::MAX,
            ..Usage::default()
        },
        ..free
    };
    assert_eq!(Prices::implied(&[beyond, beyond]), None);
}
