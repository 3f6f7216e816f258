//! The real program, killed at random moments.

use sifaka_testkit::kill::Campaign;

#[test]
fn two_hundred_kills_lose_nothing_that_was_acknowledged() {
    let folder = tempfile::tempdir().unwrap();
    let campaign = Campaign {
        program: env!("CARGO_BIN_EXE_sifaka").into(),
        folder: folder.path().to_owned(),
        rounds: 200,
        seed: 7,
    };
    let report = campaign.run().unwrap();
    assert_eq!(report.killed, 200);
    assert!(report.acknowledged >= 100, "too little was acknowledged before the kills: {report}");
}
