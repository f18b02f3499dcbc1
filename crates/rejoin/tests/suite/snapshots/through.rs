//! Nothing of the machine is left: conversations lie in PostgreSQL, sessions in an object store.

use rejoin_testkit::{Chronicle, S3, World, on_every_cli};

on_every_cli!(a_server_and_a_bucket_are_all_that_is_left);

/// B-01, B-24
fn a_server_and_a_bucket_are_all_that_is_left(world: World) {
    let (Some(mut world), Some(bucket)) = (world.on_server(), S3::start()) else {
        return;
    };
    world.set("REJOIN_BLOBS_URL", &bucket.url());
    for (name, value) in bucket.variables(&bucket.endpoint) {
        world.set(name, &value);
    }
    let mut story = Chronicle::begun(world);
    let turn = story.resumes(&["--must-save"]);
    assert_eq!(turn["saved"], "stored", "{turn:#}");
    assert!(!bucket.bodies().is_empty());
    story.world.lose_the_machine();
    std::fs::remove_dir_all(story.world.data()).unwrap();
    story.restores(&[]);
    // Another machine that knows the same server.
    story.world.go_to("second");
    let here = story.world.work().to_str().unwrap().to_owned();
    story.restores(&["-w", &here]);
    story.resumes(&["-w", &here]);
}
