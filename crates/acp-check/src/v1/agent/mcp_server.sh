# A minimal MCP server: it writes down how it was started and that it was initialized, and responds to every request.
# The directory may be removed before the server exits, so errors are hidden.
exec 2>/dev/null
notes=$1
printf '%s\n%s\n' "$2" "$ACP_CHECK" >"$notes.part" && mv "$notes.part" "$notes.started"
while IFS= read -r line; do
    id=$(printf '%s\n' "$line" | sed -nE 's/.*"id" *: *("[^"]*"|[0-9]+).*/\1/p')
    [ -n "$id" ] || continue
    case $line in
    *'"initialize"'*)
        printf '%s\n' "$line" >"$notes.part" && mv "$notes.part" "$notes.initialized"
        result='{"protocolVersion":"2025-06-18","capabilities":{"tools":{}},"serverInfo":{"name":"acp-check","version":"1"}}'
        ;;
    *'"tools/list"'*) result='{"tools":[]}' ;;
    *) result='{}' ;;
    esac
    printf '{"jsonrpc":"2.0","id":%s,"result":%s}\n' "$id" "$result"
done
