use std::time::Duration;
use testkit::wait_for;

#[test]
fn a_condition_that_holds_is_seen_even_with_no_time_to_wait() {
    assert_eq!(wait_for("it", Duration::ZERO, || Some(7)).unwrap(), 7);
}

#[test]
fn a_condition_that_comes_later_is_awaited() {
    let mut looks = 0;
    let found = wait_for("the third look", Duration::from_secs(30), || {
        looks += 1;
        (looks == 3).then_some(looks)
    });
    assert_eq!(found.unwrap(), 3);
}

#[test]
fn the_error_says_what_was_awaited_and_how_long() {
    let error = wait_for::<()>("rain", Duration::from_millis(1), || None).unwrap_err();
    assert_eq!(error.to_string(), "waited 1ms for rain, in vain");
}
