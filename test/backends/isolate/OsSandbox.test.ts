/** Commands in bubblewrap reach their folder, and nothing else. */
import { execFile, execFileSync, spawn } from "node:child_process"
import * as dgram from "node:dgram"
import * as fs from "node:fs"
import * as net from "node:net"
import * as os from "node:os"
import * as path from "node:path"
import { assert, it } from "@effect/vitest"
import { Effect } from "effect"
import type { Sandbox } from "effect-deepagents"
import type * as HostFiles from "effect-deepagents/backends/HostFiles"
import * as OsSandbox from "effect-deepagents/backends/OsSandbox"
import { makeFilter } from "../../../src/backends/internal/isolate/seccomp.ts"
import { sampled, isFull } from "../../scale.ts"
import { canary, describeIsolated, folders, processesWith, until, works } from "./box.ts"
import { escapes, type Recipe, sends, sockets } from "./recipes.ts"

process.env["ISOLATE_SECRET"] = canary

const openBox = (more: Omit<OsSandbox.Options, "root"> = {}) =>
  Effect.gen(function* () {
    const { outside, root } = yield* folders
    return { root, outside, box: yield* OsSandbox.make({ root, ripgrep: false, ...more }) }
  })

/** Fills in a recipe, and runs it: its output has neither the canary nor a success. */
const tryRecipe = (
  box: Sandbox.Service,
  { command, name }: Recipe,
  places: { readonly [place: string]: string | number }
) =>
  Effect.gen(function* () {
    const filled = command.replaceAll(/\{(\w+)\}/g, (whole, place: string) => String(places[place] ?? whole))
    const said = yield* box
      .execute(filled, { timeout: "30 seconds" })
      .pipe(Effect.match({ onSuccess: ({ output }) => output, onFailure: (error) => error.message }))
    assert.notInclude(said, canary, name)
    assert.notInclude(said, "OPENED", name)
  })

/** Listeners of the machine, which count who comes. */
const listeners = (outside: string) =>
  Effect.acquireRelease(
    Effect.promise(async () => {
      const seen: Array<string> = []
      const abstract = `isolate-${process.pid}`
      const listen = (where: Record<string, unknown>) =>
        new Promise<net.Server>((resolve) => {
          const server = net.createServer((socket) => {
            seen.push(JSON.stringify(where))
            socket.destroy()
          })
          server.listen(where, () => resolve(server))
        })
      const tcp = await listen({ port: 0, host: "::" })
      const unix = await listen({ path: path.join(outside, "listener") })
      const hidden = await listen({ path: `\0${abstract}` })
      const udp = dgram.createSocket("udp4").on("message", () => seen.push("udp"))
      await new Promise<void>((resolve) => udp.bind(0, resolve))
      return {
        seen,
        places: {
          port: (tcp.address() as net.AddressInfo).port,
          udp: udp.address().port,
          abstract,
          host: os.hostname()
        },
        close: () => [tcp, unix, hidden, udp].forEach((one) => one.close())
      }
    }),
    ({ close }) => Effect.sync(close)
  )

describeIsolated("commands in bubblewrap", () => {
  it.live(
    "reach the folder at its own path, an own /tmp that stays, and an own home",
    () =>
      Effect.gen(function* () {
        const { box, outside, root } = yield* openBox()
        const said = yield* box.execute("pwd; echo one > made; echo two > /tmp/kept; echo $HOME; touch ~/x; id -u")
        assert.strictEqual(said.output, `${root}\n/tmp/home\n${process.getuid?.()}\n`)
        assert.strictEqual(fs.readFileSync(path.join(root, "made"), "utf8"), "one\n")
        assert.strictEqual((yield* box.execute("cat /tmp/kept; ls ~")).output, "two\nx\n")
        assert.deepStrictEqual(fs.readdirSync(outside), ["secret.txt"])
        assert.isUndefined(box.onHost)
      }),
    30_000
  )

  it.live(
    "use git, and change neither its hooks nor its settings",
    () =>
      Effect.gen(function* () {
        const { root } = yield* folders
        const git = path.join(root, ".git")
        const asUser = (...args: ReadonlyArray<string>) => execFileSync("git", args, { cwd: root, encoding: "utf8" })
        asUser("init", "--quiet", "--template=")
        assert.isFalse(fs.existsSync(path.join(git, "hooks")))
        const settings = fs.readFileSync(path.join(git, "config"), "utf8")
        const box = yield* OsSandbox.make({ root, ripgrep: false })
        const commands = [
          "git config core.hooksPath /tmp",
          "echo '[core] fsmonitor = touch /tmp/x' >> .git/config",
          "mv .git/config .git/other",
          "rm -f .git/config",
          "mkdir -p .git/hooks; echo touch > .git/hooks/post-commit",
          "mv .git/hooks .git/old && mkdir .git/hooks && echo x > .git/hooks/pre-commit",
          "mv .git moved && cp -r moved .git && echo x > .git/hooks/pre-commit",
          "rm -rf .git/hooks; ln -s /tmp .git/hooks",
          "touch .git/config.worktree && git config --worktree core.hooksPath /tmp"
        ]
        for (const command of commands) {
          yield* box.execute(command)
          assert.strictEqual(fs.readFileSync(path.join(git, "config"), "utf8"), settings, command)
          assert.deepStrictEqual(fs.readdirSync(path.join(git, "hooks")), [], command)
        }
        const commit = "git -c user.name=a -c user.email=a@b -c safe.directory='*' commit -qm one"
        const committed = yield* box.execute(`echo 1 > f; git -c safe.directory='*' add f && ${commit}`)
        assert.strictEqual(committed.exitCode, 0, committed.output)
        assert.match(asUser("-c", "safe.directory=*", "log", "--oneline"), /one/)
      }),
    60_000
  )

  it.live(
    "change neither hooks nor settings of the repositories below: submodules, work trees, bare ones and others",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* folders
        const git = (cwd: string, ...args: ReadonlyArray<string>) =>
          execFileSync(
            "git",
            ["-c", "user.name=a", "-c", "user.email=a@b", "-c", "protocol.file.allow=always", ...args],
            {
              cwd,
              stdio: ["ignore", "pipe", "ignore"]
            }
          )
        const make = (at: string) => {
          fs.mkdirSync(at, { recursive: true })
          git(at, "init", "-q", "-b", "main", "--template=")
          git(at, "commit", "-q", "--allow-empty", "-m", "one")
        }
        const source = path.join(outside, "source")
        for (const at of [source, root, path.join(root, "vendor/deep/lib")]) make(at)
        git(root, "submodule", "add", "-q", source, "libs/sub")
        git(root, "commit", "-qm", "two")
        git(root, "worktree", "add", "-q", "tree")
        git(root, "clone", "-q", "--bare", "--template=", source, "bare.git")
        // A link that looks like a repository is not followed.
        fs.symlinkSync(source, path.join(root, "linked"))
        const repositories = [".git", "vendor/deep/lib/.git", ".git/modules/libs/sub", "bare.git"]
        const files = ["libs/sub/.git", "tree/.git", ".git/worktrees/tree/commondir"]
        const settings = [...repositories.map((at) => `${at}/config`), ...files]
        const textOf = (at: string) => fs.readFileSync(path.join(root, at), "utf8")
        const before = settings.map(textOf)
        const box = yield* OsSandbox.make({ root, ripgrep: false })
        const tries = [
          ...repositories.flatMap((at) => [
            `echo x > ${at}/hooks/post-checkout`,
            `rm -rf ${at}/hooks; mkdir -p ${at}/hooks && echo x > ${at}/hooks/pre-commit`,
            `mv ${at} ${at}.old; cp -r ${at}.old ${at}; echo x > ${at}/hooks/pre-commit`,
            `git config -f ${at}/config core.fsmonitor 'touch x'`,
            `cp ${at}/config c; echo '[core] pager = x' >> c; mv -f c ${at}/config`
          ]),
          ...files.map((at) => `rm -f ${at}; echo 'gitdir: /tmp/evil' > ${at}`),
          "mv vendor vendor2; mkdir -p vendor/deep/lib/.git/hooks; echo x > vendor/deep/lib/.git/hooks/pre-commit",
          "mv libs libs2; mkdir -p libs/sub; echo 'gitdir: /tmp' > libs/sub/.git",
          "echo x > linked/.git/hooks/pre-commit"
        ]
        yield* box.execute(tries.join("\n"))
        assert.deepStrictEqual(settings.map(textOf), before)
        for (const at of repositories) {
          const hooks = fs.readdirSync(path.join(root, at, "hooks")).filter((name) => !name.endsWith(".sample"))
          assert.deepStrictEqual(hooks, [], at)
        }
        assert.isFalse(fs.existsSync(path.join(source, ".git/hooks/pre-commit")))
        // Work in them goes on.
        const commit = "git -c safe.directory='*' -c user.name=a -c user.email=a@b commit -q --allow-empty -m x"
        const worked = yield* box.execute(
          ["vendor/deep/lib", "libs/sub", "tree"].map((at) => `(cd ${at} && ${commit})`).join(" && ")
        )
        assert.strictEqual(worked.exitCode, 0, worked.output)
        // A repository that a command makes is its own: it can remove it again.
        const own = yield* box.execute("git init -q own && touch own/.git/hooks/x && git -C own config a.b c")
        assert.strictEqual(own.exitCode, 0, own.output)
        assert.strictEqual((yield* box.execute("rm -rf own")).output, "")
      }),
    60_000
  )

  it.live(
    "read and change the named paths",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* folders
        const inner = path.join(root, "inner")
        fs.mkdirSync(inner)
        const reading = yield* OsSandbox.make({ root, readable: [outside, inner] })
        const read = yield* reading.execute(`cat ${outside}/secret.txt; touch ${outside}/x; touch inner/x; touch y`)
        assert.include(read.output, canary)
        assert.deepStrictEqual(fs.readdirSync(outside), ["secret.txt"])
        // The deepest folder decides.
        assert.deepStrictEqual(fs.readdirSync(inner), [])
        const changing = yield* OsSandbox.make({ root, writable: [outside] })
        yield* changing.execute(`touch ${outside}/x`)
        assert.deepStrictEqual(fs.readdirSync(outside), ["secret.txt", "x"])
      }),
    30_000
  )

  it.live(
    "find no way to the files, the processes and the kernel of the machine",
    () =>
      Effect.gen(function* () {
        const { box, outside } = yield* openBox()
        const places = { outside, pid: process.pid }
        yield* Effect.forEach(sampled(escapes), (recipe) => tryRecipe(box, recipe, places), { concurrency: 2 })
        assert.deepStrictEqual(fs.readdirSync(outside), ["secret.txt"])
        assert.deepStrictEqual(fs.readdirSync(path.dirname(outside)).toSorted(), ["outside", "root"])
        // No writable file isolates the next command: it runs.
        assert.strictEqual((yield* box.execute("echo on")).output, "on\n")
      }),
    60_000
  )

  it.live(
    "send no byte to a listener of the machine, by any kind of socket",
    () =>
      Effect.gen(function* () {
        const { box, outside } = yield* openBox()
        const { places, seen } = yield* listeners(outside)
        const all = [...sends, ...sockets]
        yield* Effect.forEach(sampled(all), (recipe) => tryRecipe(box, recipe, { ...places, outside }), {
          concurrency: 2
        })
        assert.deepStrictEqual(seen, [])
        // The listeners do listen.
        yield* Effect.promise(
          () =>
            new Promise<void>((done) =>
              net
                .connect(places.port, "127.0.0.1")
                .on("close", () => done())
                .resume()
            )
        )
        assert.lengthOf(seen, 1)
      }),
    60_000
  )

  it.live(
    "make none of the filtered system calls",
    () =>
      Effect.gen(function* () {
        const { box } = yield* openBox()
        // All arguments are 0: an unfiltered call succeeds, or fails by its arguments.
        const script = [
          "import ctypes, os",
          "libc = ctypes.CDLL(None, use_errno=True)",
          "def call(n, *a):",
          "  ctypes.set_errno(0); r = libc.syscall(n, *a); return ctypes.get_errno() if r == -1 else 'ok'",
          "numbers = {'x64': dict(ptrace=101, keyctl=250, personality=135, unshare=272, userfaultfd=323, bpf=321, io_uring_setup=425, clone3=435, kcmp=312, add_key=248), 'arm64': dict(ptrace=117, keyctl=219, personality=92, unshare=97, userfaultfd=282, bpf=280, io_uring_setup=425, clone3=435, kcmp=272, add_key=217)}",
          `print({name: call(n, 0, 0, 0, 0, 0) for name, n in numbers['${process.arch}'].items()})`,
          "import socket",
          "def family(n):",
          "  try: socket.socket(n, socket.SOCK_DGRAM).close(); return 'ok'",
          "  except OSError as e: return e.errno",
          "print({n: family(n) for n in [1, 2, 10, 16, 17, 38, 40]})"
        ].join("\n")
        const { output } = yield* box.execute("python3 -", { stdin: script })
        assert.strictEqual(
          output,
          "{'ptrace': 1, 'keyctl': 1, 'personality': 1, 'unshare': 1, 'userfaultfd': 1, 'bpf': 1, 'io_uring_setup': 38, 'clone3': 38, 'kcmp': 1, 'add_key': 1}\n{1: 'ok', 2: 'ok', 10: 'ok', 16: 'ok', 17: 97, 38: 97, 40: 97}\n"
        )
        assert.isUndefined(makeFilter("mips"))
      }),
    30_000
  )

  it.live(
    "reach the servers of each other, and end with all that they started",
    () =>
      Effect.gen(function* () {
        const { box, root } = yield* openBox()
        const word = `left-${process.pid}`
        const server = `require("http").createServer((a, b) => b.end("served")).listen(8124, () => require("fs").writeFileSync("up", ""))`
        const serving = yield* Effect.forkScoped(box.execute(`node -e '${server}' ${word}`, { timeout: "30 seconds" }))
        yield* until(() => fs.existsSync(path.join(root, "up")))
        assert.strictEqual((yield* box.execute("curl -s http://127.0.0.1:8124/")).output, "served")
        const done = yield* box.execute(`sleep 300 ${word} & setsid -f sh -c 'sleep 301; : ${word}'; true`)
        assert.include(done.left ?? [], "sleep")
        yield* until(() => processesWith(word).every((line) => line.includes("8124")))
        serving.interruptUnsafe()
        yield* until(() => processesWith(word).length === 0)
      }),
    60_000
  )

  it.live(
    "are asked to end before they are killed",
    () =>
      Effect.gen(function* () {
        const { box, root } = yield* openBox()
        const trap = "trap 'echo asked > asked; exit' TERM; touch up; while :; do sleep 0.05; done"
        const running = yield* Effect.forkScoped(box.execute(trap))
        yield* until(() => fs.existsSync(path.join(root, "up")))
        running.interruptUnsafe()
        yield* until(() => fs.existsSync(path.join(root, "asked")))
      }),
    30_000
  )

  it.live(
    "do not decide which program isolates them",
    () =>
      Effect.gen(function* () {
        const { box, outside, root } = yield* openBox()
        for (const name of ["bwrap", "nsenter", "prlimit", "sh"]) {
          fs.writeFileSync(path.join(root, name), `#!/bin/sh\ntouch ${outside}/ran\n`, { mode: 0o755 })
        }
        fs.writeFileSync(path.join(root, "not-a-library.so"), "")
        const env = { PATH: `${root}:/usr/bin`, LD_PRELOAD: `${root}/not-a-library.so`, LD_LIBRARY_PATH: root }
        yield* box.execute("true", { env })
        assert.deepStrictEqual(fs.readdirSync(outside), ["secret.txt"])
      }),
    30_000
  )

  it.live(
    "inherit no descriptor, and end when the program is killed",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* folders
        const secret = yield* Effect.acquireRelease(
          Effect.sync(() => fs.openSync(path.join(outside, "secret.txt"), "r")),
          (fd) => Effect.sync(() => fs.closeSync(fd))
        )
        const word = `killed-${process.pid}`
        const stdio: Array<"pipe" | "ignore" | number> = ["ignore", "pipe", "inherit" as "ignore"]
        while (stdio.length < 251) stdio.push("ignore")
        const child = yield* Effect.acquireRelease(
          Effect.sync(() =>
            spawn(
              process.execPath,
              [
                "--conditions=@effect-deepagents/source",
                path.join(import.meta.dirname, "../children/isolated.ts"),
                root,
                word
              ],
              { stdio: [...stdio, secret] }
            )
          ),
          (one) => Effect.sync(() => void one.kill("SIGKILL"))
        )
        let said = ""
        child.stdout?.on("data", (bytes: Buffer) => (said += bytes.toString()))
        yield* until(() => said.includes("READY") && processesWith(word).length > 1)
        assert.include(said, "descriptors: 0 1 2 251=/dev/null")
        child.kill("SIGKILL")
        yield* until(() => processesWith(word).length === 0)
      }),
    isFull ? 60_000 : 30_000
  )

  it.live(
    "are isolated for users other than the superuser",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* folders
        const nobody = process.getuid?.() === 0 ? { uid: 65_534, gid: 65_534 } : {}
        if (nobody.uid !== undefined) fs.chownSync(root, nobody.uid, nobody.gid)
        const commands = [
          `cat ${outside}/secret.txt; touch made; id -u; unshare -r true && echo OPENED`,
          "find /proc /sys -maxdepth 4 -type f | while read f; do true 2>/dev/null >> $f && echo OPENED; done",
          "grep -E '^(CapEff|CapBnd|NoNewPrivs|Seccomp):' /proc/self/status"
        ]
        const child = path.join(import.meta.dirname, "../children/isolated.ts")
        const args = ["--conditions=@effect-deepagents/source", child, root, "", ...commands]
        const said = yield* Effect.callback<string>((resume) => {
          const env = { PATH: process.env["PATH"] ?? "", HOME: root }
          execFile(process.execPath, args, { ...nobody, env, cwd: root }, (_, stdout, stderr) =>
            resume(Effect.succeed(stdout + stderr))
          )
        })
        assert.include(said, "READY")
        assert.notInclude(said, canary)
        assert.notInclude(said, "OPENED")
        assert.include(said, `\n${nobody.uid ?? process.getuid?.()}\n`)
        assert.match(said, /CapEff:\t0+\nCapBnd:\t0+\nNoNewPrivs:\t1\nSeccomp:\t2\n/)
        assert.isTrue(fs.existsSync(path.join(root, "made")))
      }),
    30_000
  )

  it.live("have the Node of the program, also below /tmp", () =>
    Effect.gen(function* () {
      const { outside, root } = yield* folders
      // A version manager or a clone may have it there.
      const node = path.join(outside, "bin/node")
      fs.mkdirSync(path.dirname(node))
      fs.copyFileSync(process.execPath, node, fs.constants.COPYFILE_FICLONE)
      const child = path.join(import.meta.dirname, "../children/isolated.ts")
      const args = ["--conditions=@effect-deepagents/source", child, root, "", `${node} -p '6 * 7'; ls /tmp ${outside}`]
      const said = yield* Effect.callback<string>((resume) => {
        execFile(node, args, (_, stdout, stderr) => resume(Effect.succeed(stdout + stderr)))
      })
      assert.include(said, "\n42\n")
      assert.notInclude(said, "secret.txt")
    })
  )

  it.live(
    "over the machine's own paths, reach the folders that file tools reach, also later ones",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* folders
        const inner = path.join(root, "inner")
        fs.mkdirSync(inner)
        let list: ReadonlyArray<HostFiles.Folder> = [{ path: inner, access: "read" }]
        const box = yield* OsSandbox.makeHost({ cwd: root, folders: Effect.sync(() => list), ripgrep: false })
        yield* box.write("kept.txt", "by tool")
        const first = yield* box.execute(`cat ${root}/kept.txt; cat ${outside}/secret.txt; touch inner/x; pwd`)
        assert.notInclude(first.output, canary)
        assert.match(first.output, new RegExp(`^by tool[^]*${root}\n$`))
        assert.deepStrictEqual(fs.readdirSync(inner), [])
        yield* box.write(`${box.paths?.scratch}/note`, "x")
        assert.strictEqual((yield* box.execute("cat note", { cwd: box.paths?.scratch })).output, "x")
        list = [{ path: outside, access: "write" }]
        assert.strictEqual((yield* box.execute(`cat ${outside}/secret.txt; touch ${outside}/x`)).output, canary)
        assert.deepStrictEqual(fs.readdirSync(outside), ["secret.txt", "x"])
        list = []
        assert.notInclude((yield* box.execute(`cat ${outside}/secret.txt`)).output, canary)
      }),
    30_000
  )

  it.live(
    "put no link in the place of a folder inside of theirs",
    () =>
      Effect.gen(function* () {
        const { outside, root } = yield* folders
        const deep = path.join(root, "a/b/deep")
        fs.mkdirSync(deep, { recursive: true })
        const list: ReadonlyArray<HostFiles.Folder> = [{ path: deep, access: "read" }]
        const box = yield* OsSandbox.makeHost({ cwd: root, folders: list, ripgrep: false })
        yield* box.execute(`mv a moved; mv a/b a/c; rm -r a; mkdir -p a/b; ln -s ${outside} a/b/deep`)
        assert.isTrue(fs.lstatSync(deep).isDirectory())
        // Somebody else did: then it is not there.
        fs.rmSync(deep, { recursive: true })
        fs.symlinkSync(outside, deep)
        const { output } = yield* box.execute(`cat a/b/deep/secret.txt; touch a/b/new; echo on`)
        assert.notInclude(output, canary)
        assert.include(output, "on\n")
      }),
    30_000
  )

  it.live("have limits", () =>
    Effect.gen(function* () {
      const { box } = yield* openBox({ limits: { fileBytes: 10_000, openFiles: 50 } })
      const { output } = yield* box.execute("ulimit -n; ulimit -c; (head -c 20000 /dev/zero > big) 2>&-; wc -c < big")
      assert.match(output, /^50\n0\n.*\n?10000\n$/)
    })
  )
})

it.live.skipIf(works)("where nothing isolates, nothing runs", () =>
  Effect.gen(function* () {
    const { root } = yield* folders
    const error = yield* Effect.flip(OsSandbox.make({ root }))
    assert.strictEqual(error.reason._tag, "Unsupported")
  })
)

it.live("the whole machine is no folder of a sandbox", () =>
  Effect.gen(function* () {
    for (const made of [OsSandbox.make({ root: "/" }), OsSandbox.makeHost({ cwd: "/" })]) {
      const error = yield* Effect.flip(Effect.scoped(made))
      assert.strictEqual(error.reason._tag, "Unsupported")
    }
  })
)
