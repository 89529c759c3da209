/**
 * Ways out of a sandbox, as commands. Each is harmless where it succeeds: it reads a canary, writes beside the folder, or
 * opens something for writing without writing. `{outside}` is the folder beside the sandbox's, `{pid}` a process of the
 * machine, `{ports}` its listeners.
 */
export interface Recipe {
  readonly name: string
  readonly command: string
}

const reads = [
  "cat {outside}/secret.txt",
  "ln -s {outside}/secret.txt link; cat link",
  "ln {outside}/secret.txt hard && cat hard",
  "ln -s {outside} folder; ls folder; cat folder/secret.txt",
  "ln -s / all; cat all{outside}/secret.txt",
  "cp -r {outside} copy; cat copy/secret.txt",
  "cat ../outside/secret.txt",
  "cd ..; cat outside/secret.txt",
  "tar c {outside} | tar xO",
  "cat /proc/1/root{outside}/secret.txt",
  "cat /proc/self/root{outside}/secret.txt",
  "cat /proc/$PPID/root{outside}/secret.txt",
  "cat /proc/{pid}/root{outside}/secret.txt",
  "cat /proc/1/cwd/../outside/secret.txt",
  "cat /proc/*/environ /proc/*/task/*/environ",
  "for d in /proc/[0-9]*/fd/*; do head -c 5000 $d/../outside/secret.txt; done",
  "for d in /proc/[0-9]*/fd/*; do timeout 1 head -c 500 $d </dev/null; done",
  "for m in /proc/[0-9]*/map_files/*; do head -c 5 $m; done; true",
  "head -c 100000 /dev/vda /dev/sda /dev/mem /dev/kmem /dev/kmsg /proc/kcore",
  "mknod disk b 254 0 && head -c 100000 disk",
  "mkdir m; mount --bind {outside} m && cat m/secret.txt",
  "mkdir m; mount -t proc proc m; mount -t tmpfs none m; mountpoint -q m && echo OPENED",
  "mkdir c; cd c; chroot . /bin/true; chroot / cat {outside}/secret.txt",
  "unshare -Urm sh -c 'mount -o remount,rw /usr && echo OPENED'",
  "unshare -r cat {outside}/secret.txt",
  "nsenter -t 1 -a cat {outside}/secret.txt",
  "nsenter -t {pid} -m cat {outside}/secret.txt",
  "nsenter --mount=/proc/1/ns/mnt cat {outside}/secret.txt",
  "bwrap --bind / / cat {outside}/secret.txt",
  "setpriv --inh-caps +all --ambient-caps +all cat {outside}/secret.txt",
  "su -c 'cat {outside}/secret.txt'; sudo -n cat {outside}/secret.txt; pkexec cat {outside}/secret.txt",
  "docker -H unix:///var/run/docker.sock ps && cat {outside}/secret.txt; ls /var/run /run",
  "ls /home /root /mnt /media /srv /var/lib /var/spool /boot",
  "cat /etc/shadow /etc/sudoers /etc/machine-id /etc/ssl/private/* /etc/gitconfig /etc/npmrc"
]

const writes = [
  "echo x > {outside}/written",
  "ln -s {outside}/written link; echo x > link",
  "mv {outside}/secret.txt .; rm -rf {outside}",
  "touch {outside}/written ../written ../outside/written",
  "mkdir -p {outside}; mv {outside} {outside}2; echo x > {outside}2/written",
  "true >> /etc/passwd && echo OPENED; true >> /usr/bin/env && echo OPENED; true >> /opt/new && echo OPENED",
  "true >> /etc/hosts && echo OPENED; true >> /etc/ld.so.cache && echo OPENED; true >> /lib/new && echo OPENED",
  // Opened, and nothing is written: a setting of the kernel is one of this machine.
  "find /proc -maxdepth 3 -type f -not -path '/proc/[0-9]*/*' 2>/dev/null | while read f; do true >> $f && echo OPENED $f; done",
  "find /proc/sys -type f 2>/dev/null | while read f; do true >> $f && echo OPENED $f; done",
  "find /proc/1/ /proc/self/ -maxdepth 1 -type f 2>/dev/null | while read f; do true >> $f && echo OPENED $f; done",
  "find /sys -type f 2>/dev/null | while read f; do true >> $f && echo OPENED $f; done",
  "touch /sys/fs/cgroup/release_agent /sys/kernel/uevent_helper && echo OPENED"
]

const processes = [
  "kill -0 {pid} && echo OPENED",
  "for i in $(seq 1 400); do [ $i = 1 ] || [ $i = $$ ] || kill -0 $i 2>/dev/null && cat /proc/$i/environ; done",
  "renice -n -20 $$ && chrt -f 99 true && echo OPENED",
  "dmesg && echo OPENED",
  "iptables -L && echo OPENED",
  "capsh --print | grep -q 'Current: =ep' && echo OPENED"
]

/** The ways to other networks: none of the listeners may get a byte. */
export const sends: ReadonlyArray<Recipe> = [
  "127.0.0.1",
  "localhost",
  "[::1]",
  "0.0.0.0",
  "{host}",
  "2130706433"
].flatMap((address) => {
  const bare = address.replaceAll(/[[\]]/g, "")
  return [
    `curl -sm 3 --noproxy '*' http://${address}:{port}/`,
    `curl -sm 3 http://${address}:{port}/`,
    `exec 3<>/dev/tcp/${bare}/{port} && echo hello >&3`,
    `echo hello > /dev/udp/${bare}/{udp}`,
    `python3 -c 'import socket; socket.create_connection(("${bare}", {port}), 3).send(b"hello")'`,
    `node -e 'require("net").connect({port}, "${bare}").on("error", () => 0).end("hello")'`,
    `node -e 'require("dgram").createSocket("udp4").send("hello", {udp}, "${bare}", () => process.exit())'`,
    `git ls-remote http://${address}:{port}/x`,
    `wget -qT 3 -t 1 -O- http://${address}:{port}/`
  ].map((command) => ({ name: `network: ${command}`, command: `bash -c "$(cat <<'END'\n${command}\nEND\n)"` }))
})

/** Sockets that lie in files, and names of sockets without a file. */
export const sockets: ReadonlyArray<Recipe> = [
  "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"{outside}/listener\")'",
  "ln -s {outside}/listener l; python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"l\")'",
  "python3 -c 'import socket; socket.socket(socket.AF_UNIX).connect(\"\\0{abstract}\")'",
  "python3 -c 'import socket; socket.socket(40, socket.SOCK_STREAM)' && echo OPENED",
  "python3 -c 'import socket; socket.socket(socket.AF_PACKET, socket.SOCK_RAW)' && echo OPENED",
  "python3 -c 'import socket; socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)' && echo OPENED",
  "python3 -c 'import socket; socket.socket(38, socket.SOCK_SEQPACKET)' && echo OPENED",
  "getent hosts example.com && echo OPENED"
].map((command) => ({ name: `sockets: ${command}`, command }))

const makeRecipes = (kind: string, commands: ReadonlyArray<string>): ReadonlyArray<Recipe> =>
  commands.map((command) => ({ name: `${kind}: ${command}`, command }))

/** Ways to the files, the processes and the kernel of the machine. */
export const escapes: ReadonlyArray<Recipe> = [
  ...makeRecipes("reads", reads),
  ...makeRecipes("writes", writes),
  ...makeRecipes("processes", processes)
]
