//! `--help` by purpose, and completions.

/// The commands by what they are for, as `--help` shows them.
const PURPOSES: [(&str, &str); 4] = [
    ("Look", "status explain waiting compare settings health"),
    (
        "Act",
        "run launcher gateway second-gateway intake console push check discover add import opt-out \
         dump",
    ),
    ("Decide", "groups decisions admission sources"),
    (
        "Keep",
        "backup restore db key moderator token seccomp-profile completions backoff",
    ),
];

/// The script that completes commands and their own flags. Settings are typed into files: as flags
/// of each command they would take a megabyte.
pub(super) fn completions(command: clap::Command, shell: clap_complete::Shell) -> Vec<u8> {
    /// Without `help COMMAND` and `--help`, which repeat everything, and with one sentence each.
    fn plain(command: clap::Command) -> clap::Command {
        let about = first_sentence(&command);
        let command = command.disable_help_subcommand(true);
        let command = command.disable_help_flag(true).about(about);
        command.mut_subcommands(plain)
    }
    let command = command.mut_arg("config", |config| config.global(false));
    let mut script = Vec::new();
    clap_complete::generate(shell, &mut plain(command), "fedicensus", &mut script);
    let text = String::from_utf8_lossy(&script).replace("__subcmd__", "__");
    let lines = text.lines().map(|line| line.trim_start().to_owned() + "\n");
    lines.collect::<String>().into_bytes()
}

fn first_sentence(command: &clap::Command) -> String {
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    about.split(". ").next().unwrap_or_default().to_owned()
}

pub(super) fn by_purpose(command: &clap::Command) -> String {
    let mut text = String::new();
    for (purpose, names) in PURPOSES {
        text.push_str(&format!("\n{purpose}:\n"));
        for name in names.split(' ') {
            let below = command.find_subcommand(name);
            let sentence = below.map(first_sentence).unwrap_or_default();
            text.push_str(&format!("  {name:<16} {sentence}\n"));
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use clap::{CommandFactory as _, ValueEnum as _};

    use super::super::Cli;
    use super::*;

    #[test]
    fn each_command_has_one_purpose() {
        let mut sorted: Vec<&str> = PURPOSES
            .iter()
            .flat_map(|(_, names)| names.split(' '))
            .collect();
        let command = Cli::command();
        let mut commands: Vec<&str> = command
            .get_subcommands()
            .map(clap::Command::get_name)
            .collect();
        sorted.sort_unstable();
        commands.sort_unstable();
        assert_eq!(sorted, commands);
    }

    #[test]
    fn completions_offer_no_settings_and_are_short() {
        for shell in clap_complete::Shell::value_variants() {
            let text = String::from_utf8(completions(Cli::command(), *shell)).unwrap();
            assert!(text.len() <= 30_000, "{shell}: {}", text.len());
            assert!(!text.contains("checks-max"), "{shell}");
        }
    }
}
