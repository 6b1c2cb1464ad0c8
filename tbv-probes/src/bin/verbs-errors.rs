//! Makes the mistakes that programs make, and checks what comes of each.

use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use tbv_probes::cli::{self, DeviceArguments, EXIT_STATUS};
use tbv_probes::errors::{CASES, Case, Stage, Step, Verdict};
use tbv_probes::pair::Devices;
use tbv_probes::verbs::Error;

const EXAMPLES: &str = "\
Examples:
  verbs-errors                                  first device, connected to itself
  verbs-errors -d usb4_rdma0 -p usb4_rdma1      the two ends of a cable
  verbs-errors --strict send-bad-lkey peer-gone only these, and only what InfiniBand demands
  verbs-errors --list                           what there is

";

/// Makes the mistakes that programs make with verbs, and checks that each gets the error it should.
///
/// Bad keys and ranges, wrong protection domains, requests in the wrong state, full queues, peers that are slow or gone.
/// Each case has queue pairs of its own. Where devices are known to differ from the InfiniBand specification, the usual
/// other answer passes too, unless --strict is given.
#[derive(Parser)]
#[command(name = "verbs-errors", version, after_help = format!("{EXAMPLES}{EXIT_STATUS}"))]
struct Arguments {
    #[command(flatten)]
    devices: DeviceArguments,
    /// Cases to try [default: all]
    #[arg(value_name = "CASE")]
    cases: Vec<String>,
    /// Only say which cases there are
    #[arg(short, long)]
    list: bool,
    /// Accept only what the InfiniBand specification demands
    #[arg(long)]
    strict: bool,
    /// Say what happened in cases that passed, too
    #[arg(short, long)]
    verbose: bool,
    /// Seconds to wait for what must happen
    #[arg(long, value_name = "SECONDS", default_value_t = 10)]
    timeout: u64,
}

fn main() -> ExitCode {
    match run(Arguments::parse()) {
        Ok(true) => ExitCode::SUCCESS,
        Ok(false) => ExitCode::from(cli::FAILED),
        Err(error) => cli::end_with("verbs-errors", &error),
    }
}

fn run(arguments: Arguments) -> Result<bool, Error> {
    let all = || CASES.iter().copied().flatten();
    if arguments.list {
        all().for_each(|case| println!("{:<18} {}", case.name, case.about));
        return Ok(true);
    }
    if let Some(unknown) = arguments.cases.iter().find(|name| all().all(|case| case.name != *name)) {
        return Err(Error::Unusable(format!("no case {unknown}; --list says which there are")));
    }
    let stage = Stage {
        ports: Devices::from(arguments.devices).open()?,
        patience: Duration::from_secs(arguments.timeout),
        quiet: Duration::from_millis(200),
    };
    let wanted =
        |case: &&Case| arguments.cases.is_empty() || arguments.cases.iter().any(|name| name == case.name);
    let (mut right, mut wrong) = (0, 0);
    for case in all().filter(wanted) {
        let passed = match (case.play)(&stage) {
            Ok(steps) => report(case, &steps, arguments.strict, arguments.verbose),
            Err(error) => {
                println!("not ok  {}: {error}", case.name);
                false
            }
        };
        if passed { right += 1 } else { wrong += 1 }
    }
    println!("verbs-errors: right={right} wrong={wrong}");
    Ok(wrong == 0)
}

/// Prints how a case came out; whether it passed.
fn report(case: &Case, steps: &[Step], strict: bool, verbose: bool) -> bool {
    let verdicts: Vec<Verdict> = steps.iter().map(|step| step.verdict(strict)).collect();
    let passed = !verdicts.contains(&Verdict::Wrong);
    println!("{:<7} {}", if passed { "ok" } else { "not ok" }, case.name);
    for (step, verdict) in steps.iter().zip(verdicts) {
        let mark = match verdict {
            Verdict::Right => " ",
            Verdict::Tolerated => "~",
            Verdict::Wrong => "!",
        };
        if verbose || !passed || verdict == Verdict::Tolerated {
            println!("      {mark} {step}");
        }
    }
    passed
}
