//! Tests of the method table, shared by both versions.

/// Defines the tests for one version's method table, and a function `read` that reads a case through it. That version's
/// types must be in scope.
macro_rules! method_table_tests {
    ($version:literal) => {
        /// An enum of messages that the method table defines.
        trait MethodTable: serde::Serialize + std::fmt::Debug + Sized {
            fn read_raw(method: &str, raw: &RawValue) -> Result<Self, ReadError>;
        }

        method_table_tests! { @table
            ClientRequest: raw => Some(raw);
            AgentRequest: raw => Some(raw);
            ClientNotification: raw => Some(raw);
            AgentNotification: raw => Some(raw);
            ProtocolNotification: raw => Some(raw);
            AgentResponse: raw => raw;
            ClientResponse: raw => raw;
        }

        fn read<T: MethodTable>(name: &str) -> T {
            let cases = read_cases($version);
            let case = cases
                .get(name)
                .unwrap_or_else(|| panic!("there is no case {name:?}"));
            T::read_raw(&case.method, case.raw()).unwrap_or_else(|e| panic!("{name}: {e}"))
        }

        fn check_round_trip<T: MethodTable>(name: &str, case: &MessageCase) {
            let raw = case.raw();
            let message = T::read_raw(&case.method, raw).unwrap_or_else(|e| panic!("{name}: {e}"));
            let arrived: Value = serde_json::from_str(raw.get()).unwrap();
            let expected = match &case.written {
                Some(written) => {
                    assert_ne!(written, &arrived, "{name}: `written` is not needed");
                    written
                }
                None => &arrived,
            };
            let written = serde_json::to_value(&message).unwrap();
            assert_eq!(&written, expected, "{name}");

            // Reading our own output and writing it again changes nothing.
            let again = T::read_raw(&case.method, &to_raw_value(&message).unwrap()).unwrap();
            assert_eq!(serde_json::to_value(&again).unwrap(), written, "{name}");
        }

        #[test]
        fn every_case_round_trips() {
            for (name, case) in &read_cases($version) {
                let row = METHODS
                    .iter()
                    .find(|row| row.name == case.method)
                    .unwrap_or_else(|| panic!("{name}: no such method: {}", case.method));
                let check = match (row.sender, row.kind, case.params.is_some()) {
                    (Sender::Client, MethodKind::Request, true) => check_round_trip::<ClientRequest>,
                    (Sender::Client, MethodKind::Request, false) => check_round_trip::<AgentResponse>,
                    (Sender::Agent, MethodKind::Request, true) => check_round_trip::<AgentRequest>,
                    (Sender::Agent, MethodKind::Request, false) => check_round_trip::<ClientResponse>,
                    (Sender::Client, MethodKind::Notification, true) => {
                        check_round_trip::<ClientNotification>
                    }
                    (Sender::Agent, MethodKind::Notification, true) => {
                        check_round_trip::<AgentNotification>
                    }
                    (Sender::Either, MethodKind::Notification, true) => {
                        check_round_trip::<ProtocolNotification>
                    }
                    _ => panic!("{name}: {row:?} has no such part"),
                };
                check(name, case);
            }
        }

        /// Reads a message and returns the JSON that it serializes to, or `None` if it cannot be read.
        fn round_trip_value(row: &Method, of_params: bool, raw: &RawValue) -> Option<Value> {
            fn round_trip<T: MethodTable>(method: &str, raw: &RawValue) -> Option<Value> {
                T::read_raw(method, raw).ok().map(|read| serde_json::to_value(&read).unwrap())
            }
            let round_trip = match (row.sender, row.kind, of_params) {
                (Sender::Client, MethodKind::Request, true) => round_trip::<ClientRequest>,
                (Sender::Client, MethodKind::Request, false) => round_trip::<AgentResponse>,
                (Sender::Agent, MethodKind::Request, true) => round_trip::<AgentRequest>,
                (Sender::Agent, MethodKind::Request, false) => round_trip::<ClientResponse>,
                (Sender::Client, MethodKind::Notification, _) => round_trip::<ClientNotification>,
                (Sender::Agent, MethodKind::Notification, _) => round_trip::<AgentNotification>,
                (Sender::Either, MethodKind::Notification, _) => round_trip::<ProtocolNotification>,
                _ => panic!("{row:?} has no such part"),
            };
            round_trip(row.name, raw)
        }

        #[test]
        fn arrays_are_rejected_as_params_and_results() {
            let mut read = Vec::new();
            for row in METHODS {
                let parts: &[bool] = if row.result.is_some() { &[true, false] } else { &[true] };
                for &of_params in parts {
                    for array in crate::messages::data::array_variants($version, row.name, of_params) {
                        if round_trip_value(row, of_params, &array).is_some() {
                            read.push(format!("{} (params: {of_params}): {array}", row.name));
                        }
                    }
                }
            }
            assert_eq!(read, Vec::<String>::new());
        }

        /// An array is rejected where an object is expected, just like a number. Where any JSON is allowed, the array
        /// is preserved.
        #[test]
        fn arrays_are_rejected_as_nested_objects() {
            let mut read = Vec::new();
            for (name, case) in &read_cases($version) {
                let row = METHODS.iter().find(|row| row.name == case.method).unwrap();
                let of_params = case.params.is_some();
                let message: Value = serde_json::from_str(case.raw().get()).unwrap();
                for place in crate::messages::data::nested_object_pointers(&message) {
                    let instead = |value: Value| {
                        let mut message = message.clone();
                        *message.pointer_mut(&place).unwrap() = value;
                        round_trip_value(row, of_params, &to_raw_value(&message).unwrap())
                    };
                    let number = instead(json!(-1.5));
                    for array in crate::messages::data::to_arrays(message.pointer(&place).unwrap()) {
                        let got = instead(array.clone());
                        let kept = got.as_ref().is_some_and(|got| got.pointer(&place) == Some(&array));
                        if got != number && !kept {
                            read.push(format!("{name}, {place}: {array}"));
                        }
                    }
                }
            }
            assert_eq!(read, Vec::<String>::new());
        }

        #[test]
        fn every_method_has_cases() {
            crate::messages::data::check_every_method_has_cases($version, METHODS);
        }

        #[test]
        fn every_method_is_listed_once_with_its_direction() {
            let names: std::collections::BTreeSet<_> = METHODS.iter().map(|row| row.name).collect();
            assert_eq!(names.len(), METHODS.len());

            // What one side sends is unknown if it comes from the other side.
            let raw = to_raw_value(&json!({"sessionId": "s"})).unwrap();
            fn is_known<T>(read: &Result<T, ReadError>) -> bool {
                !matches!(read, Err(ReadError::UnknownMethod(_)))
            }
            for row in METHODS {
                let request = row.kind == MethodKind::Request;
                assert_eq!(row.result.is_some(), request, "{}", row.name);
                let known = [
                    is_known(&ClientRequest::read(row.name, Some(&raw))),
                    is_known(&AgentRequest::read(row.name, Some(&raw))),
                    is_known(&ClientNotification::read(row.name, Some(&raw))),
                    is_known(&AgentNotification::read(row.name, Some(&raw))),
                    is_known(&ProtocolNotification::read(row.name, Some(&raw))),
                    is_known(&AgentResponse::read(row.name, &raw)),
                    is_known(&ClientResponse::read(row.name, &raw)),
                ];
                let expected = [
                    (Sender::Client, true),
                    (Sender::Agent, true),
                    (Sender::Client, false),
                    (Sender::Agent, false),
                    (Sender::Either, false),
                    (Sender::Client, true),
                    (Sender::Agent, true),
                ]
                .map(|part| part == (row.sender, request));
                assert_eq!(known, expected, "{}", row.name);
            }
        }

        #[test]
        fn every_message_names_its_method() {
            for (name, case) in &read_cases($version) {
                let Some(params) = case.params.as_deref() else {
                    continue;
                };
                let method = case.method.as_str();
                let row = METHODS.iter().find(|row| row.name == method).unwrap();
                method_table_tests! { @named row method params name
                    (Client, Request) => ClientRequest,
                    (Agent, Request) => AgentRequest,
                    (Client, Notification) => ClientNotification,
                    (Agent, Notification) => AgentNotification,
                    (Either, Notification) => ProtocolNotification,
                }
            }
        }
    };
    (@table $($name:ident: $raw:ident => $read:expr;)+) => { $(
        impl MethodTable for $name {
            fn read_raw(method: &str, $raw: &RawValue) -> Result<Self, ReadError> { $name::read(method, $read) }
        }
    )+ };
    (@named $row:ident $method:ident $params:ident $case:ident
        $( ($sender:ident, $kind:ident) => $message:ident, )+) => {
        match ($row.sender, $row.kind) {
            $(
                (Sender::$sender, MethodKind::$kind) => {
                    let message = $message::read($method, Some($params)).unwrap();
                    assert_eq!(message.method(), $method, "{}", $case);
                }
            )+
            _ => panic!("{}: {:?}", $case, $row),
        }
    };
}

/// Extracts a message's content, and panics if the message is not the given variant.
macro_rules! message {
    ($name:literal, $($variant:ident)::+) => {
        match read($name) {
            $($variant)::+(message) => message,
            other => panic!("{}: {other:?}", $name),
        }
    };
}

/// Extracts the update from a case, and panics if it is not the given variant.
macro_rules! update {
    ($name:literal, $variant:ident) => {{
        let notification = message!($name, AgentNotification::SessionUpdate);
        assert_eq!(notification.session_id.as_str(), "sess_01");
        match notification.update {
            SessionUpdate::$variant(update) => update,
            other => panic!("{}: {other:?}", $name),
        }
    }};
}
