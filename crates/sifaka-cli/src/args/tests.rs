//! The command line, and what the documentation says of it.

use clap::CommandFactory;
use sifaka::ErrorKind;

use super::Cli;

#[test]
fn the_command_line_is_well_formed() {
    Cli::command().debug_assert();
}

#[test]
fn the_reference_has_every_command_and_flag() {
    let reference = include_str!("../../../../docs/reference/cli.md");
    let cli = Cli::command();
    let mut commands: Vec<(String, &clap::Command)> =
        cli.get_subcommands().map(|command| (command.get_name().to_owned(), command)).collect();
    while let Some((name, command)) = commands.pop() {
        assert!(reference.contains(&name), "{name} is missing");
        for flag in command.get_arguments().filter_map(clap::Arg::get_long) {
            assert!(reference.contains(&format!("--{flag}")), "--{flag} of {name} is missing");
        }
        let below = command.get_subcommands();
        commands.extend(below.map(|below| (format!("{name} {}", below.get_name()), below)));
    }
    for flag in cli.get_arguments().filter_map(clap::Arg::get_long) {
        assert!(reference.contains(&format!("--{flag}")), "--{flag} is missing");
    }
}

#[test]
fn the_exit_codes_are_documented() {
    let page = include_str!("../../../../docs/reference/exit-codes.md");
    for kind in ErrorKind::ALL {
        let row = format!("| {} |", kind.exit_code());
        let label = format!("`{kind}`");
        let found = page.lines().any(|line| line.starts_with(&row) && line.contains(&label));
        assert!(found, "{label} is not in the row of {}", kind.exit_code());
        assert!(super::AFTER.contains(&kind.exit_code().to_string()), "{kind}");
    }
}
