//! Manual pages.

use insta::assert_snapshot;

use crate::suite::terminal::world;

#[test]
fn one_manual_page_per_command() {
    let world = world();
    let folder = world.root().join("man");
    world.run(&["man", folder.to_str().unwrap()]).ok();
    let mut pages: Vec<String> = std::fs::read_dir(&folder)
        .unwrap()
        .map(|e| e.unwrap().file_name().into_string().unwrap())
        .collect();
    pages.sort();
    assert_snapshot!(pages.join(" "), @r"rejoin-adopt.1 rejoin-answer.1 rejoin-archive.1 rejoin-cancel.1 rejoin-chain.1 rejoin-chat.1 rejoin-completions.1 rejoin-config-edit.1 rejoin-config-path.1 rejoin-config-schema.1 rejoin-config-set.1 rejoin-config-show.1 rejoin-config-unset.1 rejoin-config.1 rejoin-costs.1 rejoin-delete.1 rejoin-demo.1 rejoin-diff.1 rejoin-doctor.1 rejoin-edit.1 rejoin-escalate.1 rejoin-events.1 rejoin-explain.1 rejoin-export.1 rejoin-fork.1 rejoin-handoff.1 rejoin-hold.1 rejoin-import.1 rejoin-inbox.1 rejoin-list.1 rejoin-login.1 rejoin-logout.1 rejoin-merge.1 rejoin-model-server.1 rejoin-models.1 rejoin-open.1 rejoin-pair.1 rejoin-prompt.1 rejoin-rename.1 rejoin-reply.1 rejoin-reset.1 rejoin-retry.1 rejoin-schedule-list.1 rejoin-schedule-pause.1 rejoin-schedule-resume.1 rejoin-schedule-run.1 rejoin-schedule.1 rejoin-search.1 rejoin-seen.1 rejoin-send.1 rejoin-serve.1 rejoin-set.1 rejoin-share-close.1 rejoin-share-list.1 rejoin-share.1 rejoin-show.1 rejoin-snapshot-list.1 rejoin-snapshot-pin.1 rejoin-snapshot-restore.1 rejoin-snapshot-save.1 rejoin-snapshot-unpin.1 rejoin-snapshot-verify.1 rejoin-snapshot.1 rejoin-sweep.1 rejoin-tiers.1 rejoin-token-create.1 rejoin-token-list.1 rejoin-token-revoke.1 rejoin-token.1 rejoin-truncate.1 rejoin-trust.1 rejoin-undo.1 rejoin-wait.1 rejoin-watch.1 rejoin-workflow-cancel.1 rejoin-workflow-check.1 rejoin-workflow-list.1 rejoin-workflow-new.1 rejoin-workflow-plan.1 rejoin-workflow-resume.1 rejoin-workflow-run.1 rejoin-workflow-schema.1 rejoin-workflow-show.1 rejoin-workflow-test.1 rejoin-workflow.1 rejoin.1");
    let page = std::fs::read_to_string(folder.join("rejoin-send.1")).unwrap();
    assert!(
        page.contains("\\-\\-idempotency\\-key") && page.contains("\\-\\-json"),
        "{page}"
    );
}
