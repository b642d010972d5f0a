//! `acp man`: generates manual pages, one per command, from the command-line definition.

use std::io::{self, Write};
use std::path::Path;

use clap::{Command, CommandFactory};
use clap_mangen::Man;
use clap_mangen::roff::{Roff, roman};

use crate::args::CliArgs;
use crate::args::completions::ManArgs;
use crate::exit::CommandExit;

/// The title of the manual, shown at the top of each page.
const MANUAL_TITLE: &str = "Agent Client Protocol";

pub(crate) fn print_man_pages(args: &ManArgs) -> CommandExit {
    let mut command = CliArgs::command().disable_help_subcommand(true);
    command.build();
    match write_pages(&command, &args.directory) {
        Ok(()) => CommandExit::SUCCESS,
        Err(e) => CommandExit::failed(format!(
            "cannot write manual pages to {}: {e}",
            args.directory.display()
        )),
    }
}

/// Writes the page for a command and the pages for its subcommands.
fn write_pages(command: &Command, directory: &Path) -> io::Result<()> {
    for subcommand in command.get_subcommands().filter(|sub| !sub.is_hide_set()) {
        write_pages(subcommand, directory)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    std::fs::write(
        directory.join(format!("{name}.1")),
        render_page(command, name)?,
    )
}

fn render_page(command: &Command, name: &str) -> io::Result<Vec<u8>> {
    let version = command.get_version().unwrap_or_default();
    let man = Man::new(command.clone())
        .source(format!("acp {version}"))
        .manual(MANUAL_TITLE);
    let mut page = Vec::new();
    man.render_title(&mut page)?;
    man.render_name_section(&mut page)?;
    man.render_synopsis_section(&mut page)?;
    man.render_description_section(&mut page)?;
    man.render_options_section(&mut page)?;
    if command.get_subcommands().any(|sub| !sub.is_hide_set()) {
        man.render_subcommands_section(&mut page)?;
    }
    if let Some(text) = command.get_after_long_help() {
        write_sections(&text.to_string(), &mut page)?;
    }
    write_see_also(name, &mut page)?;
    Ok(page)
}

/// Writes the text that follows the long help. A line such as `Examples:` starts a section, and lines within it are not
/// wrapped.
fn write_sections(text: &str, page: &mut dyn Write) -> io::Result<()> {
    let mut roff = Roff::new();
    for paragraph in text.split("\n\n") {
        let mut lines = paragraph.lines();
        let first = lines.next().unwrap_or_default();
        match first.strip_suffix(':') {
            Some(heading) => {
                roff.control("SH", [heading.to_uppercase().as_str()]);
                roff.control("nf", []);
                for line in lines {
                    roff.text([roman(line.strip_prefix("  ").unwrap_or(line))]);
                }
                roff.control("fi", []);
            }
            None => {
                roff.control("PP", []);
                for line in paragraph.lines() {
                    roff.text([roman(line)]);
                }
            }
        }
    }
    roff.to_writer(page)
}

/// Writes the "SEE ALSO" section, which refers to the parent command's page.
fn write_see_also(name: &str, page: &mut dyn Write) -> io::Result<()> {
    let Some((parent, _)) = name.rsplit_once('-') else {
        return Ok(());
    };
    let mut roff = Roff::new();
    roff.control("SH", ["SEE ALSO"]);
    roff.text([roman(format!("{parent}(1)"))]);
    roff.to_writer(page)
}
