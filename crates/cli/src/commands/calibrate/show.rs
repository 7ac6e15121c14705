//! A fit on the screen.

use precipice_decide::calibrate::Calibration;
use precipice_engine::cost::BASIS_NAMES;
use serde_json::{Value, json};
use std::fmt::Write;

/// Tables for people.
pub(super) fn text(calibration: &Calibration) -> String {
    let profile = &calibration.profile;
    let mut text =
        format!("{} on {}\n", profile.model, profile.fitted_on.gpu.as_deref().unwrap_or("an unknown GPU"));
    for (run, followed, of) in &calibration.followed {
        line(&mut text, format_args!("  {run}: {followed} of {of} steps followed"));
    }
    line(
        &mut text,
        format_args!(
            "\n{:<18} {:>14} {:>10} {:>12}  (microseconds a unit)",
            "constant", "value", "+-", "up to"
        ),
    );
    for name in BASIS_NAMES {
        let Some(value) = profile.constants.get(name) else { continue };
        let error =
            calibration.errors.get(name).map_or("-".to_owned(), |error| format!("{:.5}", error * 1e6));
        let most = profile.range.get(name).map_or("-".to_owned(), |range| format!("{:.0}", range.max));
        line(&mut text, format_args!("{name:<18} {:>14.5} {error:>10} {most:>12}", value * 1e6));
    }
    let host = [
        ("host", Some(profile.host_s).filter(|host| *host > 0.0), calibration.host.full),
        ("host, piecewise", profile.host_piecewise_s, calibration.host.piecewise),
    ];
    for (name, value, seen) in host {
        if let Some(value) = value {
            let error = seen.map_or("-".to_owned(), |host| format!("{:.1}", host.error_s() * 1e6));
            line(&mut text, format_args!("{name:<18} {:>14.1} {error:>10}", value * 1e6));
        }
    }
    line(&mut text, format_args!("\n{:<24} {:>8} {:>12} {:>8}", "region", "steps", "rms, ms", "bias"));
    for residual in &profile.residuals {
        line(
            &mut text,
            format_args!(
                "{:<24} {:>8} {:>12.3} {:>+7.2} %",
                residual.region,
                residual.n,
                residual.rms_s * 1e3,
                residual.bias * 100.0
            ),
        );
    }
    if !calibration.left_out.is_empty() {
        text.push_str("\neach run's time, predicted from the others:\n");
        for (run, off) in &calibration.left_out {
            line(&mut text, format_args!("  {run}: {:+.2} %", off * 100.0));
        }
    }
    if let Some(seconds) = calibration.fixed_ttft_s {
        line(
            &mut text,
            format_args!(
                "\n{:.1} ms of a lone request's TTFT are no step (network, HTTP, tokenizer, host)",
                seconds * 1e3
            ),
        );
    }
    for lost in &calibration.unidentified {
        line(
            &mut text,
            format_args!(
                "\nnot known: {}: {}; it takes {}. Do not ask a simulation with this profile for {}",
                lost.constant, lost.why, lost.load, lost.load
            ),
        );
    }
    text
}

fn line(text: &mut String, line: std::fmt::Arguments<'_>) {
    writeln!(text, "{line}").expect("writing to a String cannot fail");
}

/// The same for programs.
pub(super) fn json(calibration: &Calibration) -> Value {
    let followed: Vec<Value> = calibration
        .followed
        .iter()
        .map(|(run, followed, of)| json!({"run": run, "followed": followed, "steps": of}))
        .collect();
    let left_out: Vec<Value> =
        calibration.left_out.iter().map(|(run, off)| json!({"run": run, "off": off})).collect();
    let unidentified: Vec<Value> = calibration
        .unidentified
        .iter()
        .map(|lost| json!({"constant": lost.constant, "why": lost.why, "load": lost.load}))
        .collect();
    json!({
        "schema": "precipice.calibration/1",
        "profile": calibration.profile,
        "standard_errors": calibration.errors,
        "left_out": left_out,
        "followed": followed,
        "fixed_ttft_s": calibration.fixed_ttft_s,
        "unidentified": unidentified,
    })
}
