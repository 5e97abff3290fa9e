use super::super::{Task, parse};
use super::*;
use crate::plan::{Plan, Sampling};

fn words(line: &str) -> Vec<OsString> {
    let words = line.split_whitespace();
    std::iter::once("flame-bpf")
        .chain(words)
        .map(OsString::from)
        .collect()
}

/// The plan of a command line, with a file and variables.
fn planned(line: &str, file: &str, variables: &[(&str, &str)]) -> Result<Plan, String> {
    let variable = |name: &str| {
        let mut all = variables.iter();
        all.find(|(known, _)| *known == name)
            .map(|(_, value)| (*value).to_owned())
    };
    let arguments = with_settings(words(line), |_| Ok(file.to_owned()), variable);
    match arguments.and_then(|arguments| parse(arguments, true)) {
        Ok(Task::Record(plan)) => Ok(*plan),
        Ok(other) => panic!("{other:?}"),
        Err(exit) => Err(exit.text),
    }
}

fn service(line: &str) -> Service {
    planned(line, "", &[]).unwrap().service.unwrap()
}

#[test]
fn addresses_have_the_path_of_their_protocol_unless_they_have_one() {
    let service = service(
        "service --otlp http://a:4318 --otlp https://b/own/path --pyroscope http://c:4040/ --parca http://d:7070",
    );
    let urls: Vec<_> = service.destinations.iter().map(|of| &*of.url).collect();
    assert_eq!(
        urls,
        [
            "http://a:4318/v1development/profiles",
            "https://b/own/path",
            "http://c:4040/push.v1.PusherService/Push",
            "http://d:7070/api/profiles/writeraw",
        ]
    );
}

#[test]
fn windows_may_gather_for_collectors_alone() {
    let line = "service --otlp http://a --pyroscope http://b --otlp-every 1m";
    let every: Vec<_> = service(line)
        .destinations
        .iter()
        .map(|of| of.every.as_secs())
        .collect();
    assert_eq!(every, [60, 0]);
    let text = planned("service --otlp http://a --otlp-every 0", "", &[]).unwrap_err();
    assert!(text.contains("not a time between requests"), "{text}");
    let text = planned("service --pyroscope http://b --otlp-every 1m", "", &[]).unwrap_err();
    assert!(text.contains("--otlp"), "{text}");
}

#[test]
fn labels_are_dropped_and_renamed_by_names_that_there_are() {
    let line =
        "service --otlp http://a --drop-label host.name --rename-label k8s.pod.name=service.name";
    let names = service(line).labels;
    assert!(names.dropped.contains("host.name"));
    assert_eq!(names.renamed["k8s.pod.name"], "service.name");
    for (flags, said) in [
        ("--drop-label pid", "container.id"),
        ("--rename-label pid=x", "container.id"),
        ("--rename-label host.name", "NAME=NEW"),
        ("--rename-label host.name=a-b", "letters"),
        (
            "--rename-label host.name=a --rename-label host.name=b",
            "keep one",
        ),
        (
            "--rename-label host.name=a.b --rename-label container.id=a_b",
            "named a_b",
        ),
        (
            "--rename-label host.name=a --drop-label host.name",
            "keep one",
        ),
    ] {
        let text = planned(&format!("service --otlp http://a {flags}"), "", &[]).unwrap_err();
        assert!(text.contains(said), "{flags}: {text}");
    }
}

#[test]
fn a_service_records_the_machine_rarely_and_in_short_windows() {
    let plan = planned("service --otlp http://a", "", &[]).unwrap();
    assert_eq!(plan.events[0].sampling, Sampling::Frequency(DEFAULT_HZ));
    assert_eq!(plan.service.unwrap().interval, DEFAULT_INTERVAL);
    assert_eq!((plan.duration, plan.window), (None, None));
    assert!(plan.events[0].outputs.is_empty());
    let plan = planned("service --otlp http://a -F 49 --window 1m", "", &[]).unwrap();
    assert_eq!(plan.events[0].sampling, Sampling::Frequency(49));
    assert_eq!(plan.service.unwrap().interval, Duration::from_secs(60));
}

#[test]
fn a_service_records_waits_beside_samples_or_alone_and_calls() {
    let recorded = |flags: &str| {
        let plan = planned(&format!("service --store /d {flags}"), "", &[]).unwrap();
        let waits = plan.waits().map(|waits| waits.wait_sample_period);
        (plan.events.len(), plan.events[0].probe.noun(), waits)
    };
    assert_eq!(
        recorded("--with-off-cpu"),
        (2, "sample", Some(DEFAULT_WAIT_PERIOD))
    );
    let ms = Duration::from_millis;
    let said = recorded("--with-off-cpu --switch-sample 1ms");
    assert_eq!(said, (2, "sample", Some(ms(1))));
    let budgeted = recorded("--with-off-cpu --max-overhead 1%");
    assert_eq!(budgeted, (2, "sample", Some(Duration::ZERO)));
    let alone = recorded("--off-cpu");
    assert_eq!((alone.0, alone.2), (1, Some(Duration::ZERO)));
    assert_eq!(recorded("--syscalls").0, 1);
    let of_file = planned(
        "service --config x",
        "store = '/e'\nwith-off-cpu = true\n",
        &[],
    );
    assert_eq!(of_file.unwrap().events.len(), 2);
    for other in ["--off-cpu", "--wall", "--off-wake"] {
        let refused = planned(
            &format!("service --store /d --with-off-cpu {other}"),
            "",
            &[],
        );
        assert!(refused.is_err(), "{other}");
    }
}

#[test]
fn a_store_is_a_destination_with_limits() {
    let service = service("service --store /d --store-size 10 --store-age 2d");
    assert!(service.destinations.is_empty());
    let (folder, limits) = service.store.unwrap();
    assert_eq!(folder, Path::new("/d"));
    assert_eq!((limits.bytes, limits.age.as_secs()), (10 << 20, 2 * 86_400));
    let file = "store = '/e'\nstore-age = '3h'\n";
    let of_file = planned("service --config x", file, &[]).unwrap();
    let (_, limits) = of_file.service.unwrap().store.unwrap();
    assert_eq!(
        (limits.bytes >> 20, limits.age),
        (u64::from(DEFAULT_STORE_MIB), 3 * HOUR)
    );
    for line in [
        "service --otlp http://a --store-size 1",
        "service --store /d --window 2h",
    ] {
        let error = planned(line, "", &[]).unwrap_err();
        assert!(error.contains("--store"), "{error}");
    }
}

#[test]
fn headers_may_be_in_files() {
    let line = |value: &str| {
        let mut words = words("service --otlp http://a");
        words.push(format!("--otlp-header=Authorization: {value}").into());
        match parse(words, true) {
            Ok(Task::Record(plan)) => plan.service.unwrap().destinations[0].headers[0].1.clone(),
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(line("Bearer x@y"), Secret::Text("Bearer x@y".to_owned()));
    let file = Secret::File("Bearer ".to_owned(), "/run/token".into());
    assert_eq!(line("Bearer @/run/token"), file);
    assert_eq!(line("@/t"), Secret::File(String::new(), "/t".into()));
}

#[test]
fn arguments_go_before_the_environment_and_that_before_the_file() {
    let file = "otlp = 'http://file'\nfreq = 7\nname = ['nginx', 'redis']\nper-thread = true\nquiet = false\n";
    let line = "service --config x.toml";
    let plan = planned(line, file, &[]).unwrap();
    let url = |plan: &Plan| plan.service.as_ref().unwrap().destinations[0].url.clone();
    assert!(url(&plan).starts_with("http://file/"));
    assert_eq!(plan.events[0].sampling, Sampling::Frequency(7));
    assert!(plan.capture.per_thread && !plan.verbosity.quiet);
    let variables = [
        ("OTEL_EXPORTER_OTLP_ENDPOINT", "http://env:4318/base/"),
        ("OTEL_EXPORTER_OTLP_HEADERS", "api-key=1,X-B=2"),
        ("OTEL_SERVICE_NAME", "shop"),
    ];
    let plan = planned(line, file, &variables).unwrap();
    assert_eq!(url(&plan), "http://env:4318/base/v1development/profiles");
    let service = plan.service.unwrap();
    assert_eq!(service.destinations[0].headers.len(), 2);
    assert_eq!(service.name.as_deref(), Some("shop"));
    let plan = planned(
        "service --config=x.toml --otlp http://arg -F 9",
        file,
        &variables,
    );
    let plan = plan.unwrap();
    assert_eq!(plan.events[0].sampling, Sampling::Frequency(9));
    let service = plan.service.unwrap();
    let urls: Vec<_> = service.destinations.iter().map(|of| &*of.url).collect();
    assert!(
        urls.contains(&"http://arg/v1development/profiles"),
        "{urls:?}"
    );
    assert!(!urls.iter().any(|url| url.contains("env")), "{urls:?}");
}

#[test]
fn what_is_wrong_is_named_with_a_remedy() {
    for (line, file, wants) in [
        ("service", "", "name a server with --otlp URL"),
        (
            "service --otlp localhost:4318",
            "",
            "write --otlp http://HOST:PORT",
        ),
        ("service --otlp http://a --otlp http://a", "", "given twice"),
        (
            "service --otlp http://a --parca-header X:y",
            "",
            "--parca-header is for --parca URL",
        ),
        (
            "service --otlp http://a -o x.svg",
            "",
            "a service writes nothing by itself",
        ),
        ("service --otlp http://a --live", "", "leave out --live"),
        (
            "service --otlp http://a -- make",
            "",
            "a service runs no command",
        ),
        ("service --config x", "otlp = {}", "`otlp` is a text"),
        ("service --config x", "otlp = ", "TOML"),
        (
            "service --config x",
            "otpl = 'http://a'",
            "there is no option `otpl`; `flame-bpf service --help`",
        ),
        (
            "service --config x",
            "store_size = 5",
            "there is no option `store_size`; write `store-size`",
        ),
        (
            "service --otlp http://a --listen localhost:9464",
            "",
            "use for instance 127.0.0.1:9464",
        ),
    ] {
        let error = planned(line, file, &[]).unwrap_err();
        assert!(error.contains(wants), "{line}: {error}");
    }
}

#[test]
fn other_commands_are_left_as_they_are() {
    let asked = |_: &str| panic!("nobody asks");
    let line = words("-p 12 --config x");
    let same = with_settings(line.clone(), |_| panic!("nobody reads"), asked);
    assert_eq!(same.unwrap(), line);
}
