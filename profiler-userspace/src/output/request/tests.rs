use super::*;
use crate::output::LabelNames;
use crate::pprof;
use crate::profile::cgroup::Cgroup;
use crate::profile::process_context::ProcessContext;
use crate::profile::{Labels, Origin, Unit, fold};
use flate2::read::GzDecoder;
use opentelemetry_proto::tonic::collector::profiles::v1development as service;
use opentelemetry_proto::tonic::profiles::v1development as wire;
use std::collections::{BTreeMap, HashSet};
use std::io::Read as _;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

const WINDOW: u64 = 1_795_385_600;

fn at(seconds: u64) -> SystemTime {
    UNIX_EPOCH + Duration::from_secs(seconds)
}

/// Three processes, two of which have one name.
fn profile() -> Profile {
    let text = b"nginx;main;work 3\nnginx;main;accept 4\nredis;main;loop 5\n";
    let mut profile = fold::parse(text, Unit::Samples).unwrap();
    profile.origin = Origin {
        started: Some(at(WINDOW)),
        period_ns: Some(52_631_578),
        ..Origin::default()
    };
    profile
}

fn sender() -> Sender {
    Sender {
        host: "web-1".to_owned(),
        service: None,
        names: LabelNames::default(),
        recorder: 7,
        firings: [12, 30, 1],
    }
}

fn otlp(profile: &Profile, sender: &Sender) -> wire::ProfilesData {
    let body = Protocol::Otlp.body(profile, sender).unwrap();
    let request = service::ExportProfilesServiceRequest::decode(&*body).unwrap();
    assert_eq!(request.encoded_len(), body.len());
    wire::ProfilesData::decode(&*body).unwrap()
}

fn pushed(profile: &Profile, sender: &Sender) -> Vec<RawSeries> {
    let body = Protocol::Pyroscope.body(profile, sender).unwrap();
    PushRequest::decode(&*body).unwrap().series
}

fn unpacked(bytes: &[u8]) -> pprof::Profile {
    let mut plain = Vec::new();
    GzDecoder::new(bytes).read_to_end(&mut plain).unwrap();
    pprof::Profile::decode(&*plain).unwrap()
}

fn labels(series: &RawSeries) -> BTreeMap<&str, &str> {
    let pairs = series.labels.iter();
    pairs.map(|label| (&*label.name, &*label.value)).collect()
}

#[test]
fn processes_of_one_name_are_one_service() {
    let data = otlp(&profile(), &sender());
    let mut services = BTreeMap::new();
    for resource in &data.resource_profiles {
        let said: BTreeMap<_, _> = (resource.resource.iter())
            .flat_map(|resource| &resource.attributes)
            .map(|of| (&*of.key, format!("{:?}", of.value)))
            .collect();
        assert!(said["host.name"].contains("web-1"));
        assert!(!said.contains_key("process.pid"));
        let profiles = &resource.scope_profiles[0].profiles;
        assert_eq!(profiles.len(), 1, "one type");
        let values = profiles[0].samples.iter().flat_map(|sample| &sample.values);
        assert_eq!(profiles[0].time_unix_nano, WINDOW * 1_000_000_000);
        services.insert(said["service.name"].clone(), values.sum::<i64>());
    }
    assert_eq!(services.len(), 2);
    assert!(services.into_iter().all(|(name, sum)| match sum {
        7 => name.contains("nginx"),
        5 => name.contains("redis"),
        _ => false,
    }));
}

#[test]
fn a_request_that_is_made_again_is_known_by_its_ids_and_no_other_is() {
    let ids = |profile: &Profile, sender: &Sender| -> Vec<Vec<u8>> {
        let data = otlp(profile, sender);
        let scopes = data.resource_profiles.iter();
        let profiles = scopes.flat_map(|of| &of.scope_profiles[0].profiles);
        profiles.map(|of| of.profile_id.clone()).collect()
    };
    let first = ids(&profile(), &sender());
    assert_eq!(first, ids(&profile(), &sender()));
    let mut all: Vec<_> = first;
    let mut later = profile();
    later.origin.started = Some(at(WINDOW + 10));
    all.extend(ids(&later, &sender()));
    let other = Sender {
        recorder: 8,
        ..sender()
    };
    all.extend(ids(&profile(), &other));
    assert!(
        all.iter()
            .all(|id| id.len() == 16 && id.iter().any(|byte| *byte != 0))
    );
    let distinct: HashSet<_> = all.iter().collect();
    assert_eq!(distinct.len(), all.len());
}

#[test]
fn every_protocol_has_all_samples() {
    let (profile, sender) = (profile(), sender());
    let sum = |series: &[Vec<u8>]| -> i64 {
        let samples = series.iter().flat_map(|bytes| unpacked(bytes).sample);
        samples.map(|sample| sample.value[0]).sum()
    };
    let of_pyroscope = pushed(&profile, &sender);
    let bytes: Vec<_> = of_pyroscope
        .iter()
        .map(|of| of.samples[0].profile.clone())
        .collect();
    assert_eq!(sum(&bytes), 12);
    let said = labels(&of_pyroscope[0]);
    assert_eq!(
        (said["__name__"], said["service_name"]),
        ("process_cpu", "nginx")
    );
    let body = Protocol::Parca.body(&profile, &sender).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let series = json["series"].as_array().unwrap().iter();
    let bytes = series.map(|of| {
        let text = of["samples"][0]["rawProfile"].as_str().unwrap();
        BASE64_STANDARD.decode(text).unwrap()
    });
    assert_eq!(sum(&bytes.collect::<Vec<_>>()), 12);
    for protocol in Protocol::ALL {
        let empty = Profile::new(Unit::Samples, crate::profile::Window::default());
        assert!(matches!(protocol.body(&empty, &sender), Err(Error::Empty)));
    }
}

#[test]
fn a_service_may_be_named() {
    let sender = Sender {
        service: Some("shop".to_owned()),
        ..sender()
    };
    for series in pushed(&profile(), &sender) {
        assert_eq!(labels(&series)["service_name"], "shop");
    }
    let text = format!("{:?}", otlp(&profile(), &sender).resource_profiles);
    assert_eq!(text.matches("\"shop\"").count(), 2, "of each process");
}

#[test]
fn more_samples_than_pyroscope_takes_are_several_profiles_at_different_times() {
    let stacks = MAX_SAMPLES + 5;
    let text: String = (0..stacks)
        .map(|number| format!("app;f{number} 1\n"))
        .collect();
    let mut profile = fold::parse(text.as_bytes(), Unit::Samples).unwrap();
    profile.origin.started = Some(at(WINDOW));
    let series = pushed(&profile, &sender());
    let parts: Vec<_> = series
        .iter()
        .map(|of| unpacked(&of.samples[0].profile))
        .collect();
    let lengths: Vec<_> = parts.iter().map(|part| part.sample.len()).collect();
    assert_eq!(lengths, [MAX_SAMPLES, 5]);
    assert_eq!(parts[1].time_nanos - parts[0].time_nanos, 1_000_000);
}

#[test]
fn what_a_collector_did_not_want_is_counted() {
    let answer = ExportProfilesServiceResponse {
        partial_success: Some(ExportProfilesPartialSuccess {
            rejected_profiles: 3,
            error_message: "too large".to_owned(),
        }),
    };
    let bytes = answer.encode_to_vec();
    let json = br#"{"partialSuccess":{"rejectedProfiles":"3","errorMessage":"too large"}}"#;
    let expected = Rejected {
        profiles: 3,
        why: "too large".to_owned(),
    };
    let rejected = |kind, answer| Protocol::Otlp.rejected(kind, answer);
    assert_eq!(rejected("application/x-protobuf", &bytes), expected);
    assert_eq!(rejected("application/json", json), expected);
    for answer in [&b""[..], b"\x0a\x00", b"\xff\xff", b"{"] {
        for kind in ["application/x-protobuf", "application/json"] {
            assert_eq!(rejected(kind, answer), Rejected::default());
        }
    }
}

#[test]
fn processes_of_one_name_in_two_cgroups_are_two_series() {
    let mut profile = profile();
    profile.change_labels(|labels| {
        let path = match labels.name() {
            Some("nginx") => "/system.slice/nginx.service",
            _ => "/user.slice/session-1.scope",
        };
        Labels {
            comm: Some("nginx".to_owned()),
            cgroup: Some(Arc::new(Cgroup::told(path, None, None))),
            ..labels
        }
    });
    let series = pushed(&profile, &sender());
    let said: Vec<_> = series.iter().map(labels).collect();
    assert_eq!(said.len(), 2);
    let path = "process_linux_cgroup";
    assert_ne!(said[0][path], said[1][path]);
    assert_ne!(series[0].samples[0].id, series[1].samples[0].id);
    // A scope is no service.
    assert_eq!(said[0]["service_name"], "nginx.service");
    assert_eq!(said[1]["service_name"], "nginx");
    let resources = otlp(&profile, &sender()).resource_profiles;
    let ids: HashSet<_> = (resources.iter())
        .map(|of| of.scope_profiles[0].profiles[0].profile_id.clone())
        .collect();
    assert_eq!((resources.len(), ids.len()), (2, 2));
}

#[test]
fn labels_may_be_dropped_and_renamed_and_what_they_told_apart_is_one() {
    let mut names = LabelNames::default();
    names
        .renamed
        .insert("process.title".to_owned(), "service.name".to_owned());
    let renamed = Sender {
        service: Some("shop".to_owned()),
        names: names.clone(),
        ..sender()
    };
    let mut profile = profile();
    profile.change_labels(|labels| labels.without_ids(false));
    let series = pushed(&profile, &renamed);
    let said: Vec<_> = series.iter().map(labels).collect();
    let services: Vec<_> = said.iter().map(|said| said["service_name"]).collect();
    assert_eq!(services, ["nginx", "redis"], "the new name goes first");
    assert!(said.iter().all(|said| !said.contains_key("process_title")));
    names.dropped.insert("process.title".to_owned());
    names.dropped.insert("host.name".to_owned());
    names.renamed.clear();
    let merged = Sender { names, ..renamed };
    let series = pushed(&profile, &merged);
    let expected = BTreeMap::from([("__name__", "process_cpu"), ("service_name", "shop")]);
    assert_eq!(series.iter().map(labels).collect::<Vec<_>>(), [expected]);
    let all = unpacked(&series[0].samples[0].profile).sample;
    assert_eq!(all.iter().map(|sample| sample.value[0]).sum::<i64>(), 12);
    let resources = otlp(&profile, &merged).resource_profiles;
    assert_eq!(resources.len(), 1);
    let samples = &resources[0].scope_profiles[0].profiles[0].samples;
    let values = samples.iter().flat_map(|sample| &sample.values);
    assert_eq!(values.sum::<i64>(), 12);
}

/// The same, whose processes are in one container, and that called `nginx` is of the service `shop`.
fn published(attributes: &[(&str, &str)]) -> Profile {
    let mut profile = profile();
    let path = format!("/docker/{}", "ab".repeat(32));
    profile.change_labels(|labels| Labels {
        context: (labels.name() == Some("nginx"))
            .then(|| ProcessContext::of(attributes.iter().copied()))
            .flatten()
            .map(Arc::new),
        cgroup: Some(Arc::new(Cgroup::told(&path, Some("web"), None))),
        ..labels
    });
    profile
}

const SHOP: [(&str, &str); 4] = [
    ("service.name", "shop"),
    ("service.instance.id", "7"),
    ("deployment.environment.name", "test"),
    ("container.id", "another"),
];

#[test]
fn what_a_process_publishes_goes_before_its_container_and_behind_what_was_said() {
    let services = |profile: &Profile, sender: &Sender| -> Vec<String> {
        let series = pushed(profile, sender);
        let services = series
            .iter()
            .map(|of| labels(of)["service_name"].to_owned());
        services.collect()
    };
    let said = Sender {
        service: Some("said".to_owned()),
        ..sender()
    };
    assert_eq!(services(&published(&SHOP), &sender()), ["shop", "web"]);
    assert_eq!(services(&published(&[]), &sender()), ["web", "web"]);
    assert_eq!(services(&published(&SHOP[1..]), &sender()), ["web", "web"]);
    assert_eq!(services(&published(&SHOP), &said), ["said", "said"]);
}

#[test]
fn every_protocol_says_what_a_process_publishes_and_no_more() {
    let profile = published(&SHOP);
    let series = pushed(&profile, &sender());
    let said = labels(&series[0]);
    assert_eq!(
        (
            said["service_instance_id"],
            said["deployment_environment_name"]
        ),
        ("7", "test")
    );
    assert_eq!(said["container_id"], "ab".repeat(32));
    assert!(!labels(&series[1]).contains_key("service_instance_id"));
    let body = Protocol::Parca.body(&profile, &sender()).unwrap();
    let json: serde_json::Value = serde_json::from_slice(&body).unwrap();
    let in_parca = json["series"][0]["labels"]["labels"].as_array().unwrap();
    let in_parca = in_parca.iter();
    let in_parca: BTreeMap<_, _> = in_parca
        .map(|of| (of["name"].as_str().unwrap(), of["value"].as_str().unwrap()))
        .collect();
    assert_eq!(in_parca, said);
    let resources = otlp(&profile, &sender()).resource_profiles;
    let keys = resources.iter().map(|of| {
        let resource = of.resource.as_ref().unwrap();
        let keys = resource.attributes.iter().map(|of| &*of.key);
        keys.collect::<Vec<_>>()
    });
    let keys: Vec<_> = keys.collect();
    assert!(keys[0].contains(&"service.instance.id"), "{keys:?}");
    for keys in &keys {
        let distinct: HashSet<_> = keys.iter().collect();
        assert_eq!(distinct.len(), keys.len(), "{keys:?}");
        assert_eq!(keys.iter().filter(|key| **key == "service.name").count(), 1);
    }
}

#[test]
fn instances_of_a_service_are_label_sets_unless_that_is_dropped() {
    let mut profile = profile();
    profile.change_labels(|labels| {
        let instance = labels.name().unwrap_or_default().to_owned();
        let attributes = [("service.name", "shop"), ("service.instance.id", &instance)];
        Labels {
            process: Some("worker".to_owned()),
            context: ProcessContext::of(attributes).map(Arc::new),
            ..labels
        }
    });
    profile.change_labels(|labels| labels.without_ids(false));
    let resources = |sender: &Sender| otlp(&profile, sender).resource_profiles.len();
    assert_eq!(
        (pushed(&profile, &sender()).len(), resources(&sender())),
        (2, 2)
    );
    let mut names = LabelNames::default();
    names.dropped.insert("service.instance.id".to_owned());
    let merged = Sender { names, ..sender() };
    assert_eq!(
        (pushed(&profile, &merged).len(), resources(&merged)),
        (1, 1)
    );
    let renamed = Sender {
        names: LabelNames {
            renamed: BTreeMap::from([("service.instance.id".to_owned(), "pod".to_owned())]),
            ..LabelNames::default()
        },
        ..sender()
    };
    let said = pushed(&profile, &renamed);
    assert_eq!(labels(&said[0])["pod"], "nginx");
}
