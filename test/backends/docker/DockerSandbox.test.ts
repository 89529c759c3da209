/** Containers on a real engine: their reach, their limits and their lifetimes. */
import { execFileSync, spawn } from "node:child_process"
import { once } from "node:events"
import * as fs from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { assert, describe, it, layer } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted, type Scope, Stream } from "effect"
import { type BackendError, Sandbox } from "effect-deepagents"
import * as DockerSandbox from "effect-deepagents/backends/DockerSandbox"
import { Secrets } from "effect-deepagents/net"
import * as NodeEgress from "effect-deepagents/net/NodeEgress"
import * as NodeNetwork from "effect-deepagents/net/NodeNetwork"
import { serve } from "../../net/servers.ts"
import { isFull } from "../../scale.ts"
import { ask, Engine, hasDocker, image, inNetwork } from "../../servers/docker.ts"
import { checkSnapshot } from "../snapshots.ts"

const folder = Effect.acquireRelease(
  Effect.sync(() => {
    const made = fs.mkdtempSync(join(tmpdir(), "docker-folder-"))
    fs.chmodSync(made, 0o755)
    return made
  }),
  (made) => Effect.sync(() => fs.rmSync(made, { recursive: true, force: true }))
)

const start = (
  options: Partial<DockerSandbox.Options> = {}
): Effect.Effect<DockerSandbox.Container, BackendError.BackendError, Engine | Scope.Scope> =>
  Effect.flatMap(Engine, (socket) => DockerSandbox.make({ socket, manifest: { image }, ...options }))

const ids = Effect.flatMap(Engine, (socket) =>
  Effect.map(DockerSandbox.list({ socket }), (found) => found.map(({ id }) => `docker:${id}`))
)

/** Waits for a condition. */
const until = (condition: () => boolean) =>
  Effect.gen(function* () {
    while (!condition()) yield* Effect.sleep("20 millis")
  })

const outputOf = (box: Sandbox.Service, command: string, options?: Sandbox.ExecuteOptions) =>
  Effect.map(box.execute(command, options), ({ output }) => output.trim())

const describeContainers = hasDocker ? describe : describe.skip

describeContainers("DockerSandbox", () => {
  layer(Engine.layer, { timeout: "2 minutes", excludeTestServices: true })((it) => {
    /** Most of it at full scale: a container takes a second. */
    const whole = isFull ? it.effect : it.effect.skip
    it.effect("commands reach the container and its folder, and nothing else", () =>
      Effect.gen(function* () {
        const root = yield* folder
        const canary = yield* folder
        fs.writeFileSync(join(canary, "secret.txt"), "canary")
        fs.symlinkSync(join(canary, "secret.txt"), join(root, "link"))
        const socket = yield* Engine
        const box = yield* start({ folder: root })
        yield* box.write("/notes/a.txt", "by the tool\n")
        assert.strictEqual(
          yield* outputOf(box, "cat notes/a.txt; echo by a command > b.txt; pwd"),
          "by the tool\n/workspace"
        )
        assert.strictEqual(fs.readFileSync(join(root, "b.txt"), "utf8"), "by a command\n")
        assert.strictEqual(fs.statSync(join(root, "b.txt")).uid, process.getuid?.())
        const tries = [
          `cat ${join(canary, "secret.txt")}`,
          "cat link",
          `cat /proc/1/root${join(canary, "secret.txt")}`,
          `ls ${socket}`,
          "wget -T 1 -O - http://172.17.0.1/",
          "mount -t tmpfs none /mnt || mount -t tmpfs none /tmp",
          "chroot / true",
          "echo x > /proc/sys/kernel/core_pattern",
          "mknod /tmp/disk b 8 0"
        ]
        const followed = yield* Effect.flip(box.read("/link"))
        assert.include(["OutsideRoot", "NotFound"], followed.reason._tag)
        for (const command of tries) {
          const { exitCode, output } = yield* box.execute(command)
          assert.notStrictEqual(exitCode, 0, command)
          assert.notInclude(output, "canary", command)
        }
        assert.strictEqual(yield* outputOf(box, "ls /sys/class/net"), "lo")
        const status = yield* outputOf(box, "grep -E 'Cap(Inh|Prm|Eff|Bnd|Amb)|NoNewPrivs' /proc/self/status")
        assert.match(status, /^(?:Cap\w+:\t0{16}\n){5}NoNewPrivs:\t1$/)
        assert.strictEqual(yield* outputOf(box, "env | grep -c CONFORMANCE || true"), "0")
      })
    )

    whole("is held to its limits, and answers after them", () =>
      Effect.gen(function* () {
        const box = yield* start({
          manifest: { image, limits: { memoryBytes: 64 * 1024 * 1024, processes: 32, cpus: 1.5 } }
        })
        const { exitCode } = yield* box.execute("tail -c 300m /dev/zero | tail -c 200m > /dev/null; echo $?; exit $?")
        const memory = yield* box.execute("head -c 200m /dev/zero | tail -c 200m | wc -c")
        assert.isTrue(exitCode !== 0 || memory.output.trim() !== String(200 * 1024 * 1024), memory.output)
        const bomb = yield* box.execute(
          "i=0; while [ $i -lt 100 ]; do sleep 5 >/dev/null 2>&1 & i=$((i+1)); done; echo all"
        )
        assert.notInclude(bomb.output.split("\n"), "all")
        assert.strictEqual(yield* outputOf(box, "echo fine"), "fine")
      })
    )

    whole("a command that is interrupted, or over its time, leaves no process", () =>
      Effect.gen(function* () {
        const box = yield* start()
        const late = yield* Effect.flip(box.execute("sleep 1234 & echo begun; sleep 1234", { timeout: "300 millis" }))
        assert.strictEqual(late.reason._tag, "TimedOut")
        const running = yield* Effect.forkChild(
          box.executeStream("echo begun; sleep 1234 & sleep 1234").pipe(Stream.runDrain)
        )
        while ((yield* outputOf(box, "ps | grep -c '[s]leep 1234' || true")) !== "2") yield* Effect.sleep("50 millis")
        yield* Fiber.interrupt(running)
        assert.strictEqual(yield* outputOf(box, "ps | grep -c '[s]leep 1234' || true"), "0")
      })
    )

    whole("streams both channels as they come, of any bytes", () =>
      Effect.gen(function* () {
        const box = yield* start()
        const events = yield* Stream.runCollect(
          box.executeStream("printf 'ä'; sleep 0.1; printf err >&2; head -c 300000 /dev/zero | tr '\\0' x")
        )
        const of = (wanted: string) =>
          events.flatMap((event) => (event._tag === "Output" && event.channel === wanted ? [event.text] : [])).join("")
        assert.strictEqual(of("stdout"), `ä${"x".repeat(300_000)}`)
        assert.strictEqual(of("stderr"), "err")
        const bytes = Uint8Array.from({ length: 700_001 }, (_, index) => (index * 7 + (index >> 8)) % 256)
        yield* box.upload([{ path: "/large", content: bytes }])
        const [back] = yield* box.download(["/large"])
        assert.deepStrictEqual(back?.ok === true && Buffer.compare(back.value, bytes), 0)
      })
    )

    whole("a snapshot is an image for the next container; a pause lets processes stand still", () =>
      Effect.gen(function* () {
        yield* Effect.scoped(checkSnapshot(start(), (snapshot) => start({ manifest: { image: snapshot } })))
        const box = yield* start()
        yield* box.write("/kept.txt", "kept")
        const made = yield* box.snapshot
        yield* box.write("/kept.txt", "changed")
        const next = yield* start({ manifest: { image: made } })
        assert.strictEqual(yield* outputOf(next, "cat kept.txt"), "kept")
        yield* box.pause
        assert.include((yield* Effect.flip(box.execute("true"))).message, "is paused")
        const socket = yield* Engine
        assert.deepStrictEqual((yield* DockerSandbox.list({ socket })).map(({ state }) => state).toSorted(), [
          "paused",
          "running"
        ])
        yield* box.resume
        assert.strictEqual(yield* outputOf(box, "cat kept.txt"), "changed")
      })
    )

    it.effect("a kept container is adopted, by two at once too, and woken", () =>
      Effect.gen(function* () {
        const socket = yield* Engine
        const root = yield* folder
        const open = (more: Partial<DockerSandbox.Options> = {}) =>
          Effect.scoped(
            Effect.flatMap(start({ folder: root, keep: true, ...more }), (box) =>
              Effect.map(outputOf(box, "echo x >> /tmp/opened; wc -l < /tmp/opened"), (opened) => ({
                id: box.id,
                opened,
                box
              }))
            )
          )
        const both = yield* Effect.all([open(), open()], { concurrency: 2 })
        const [first, second] = both
        assert.strictEqual(first.id, second.id)
        assert.deepStrictEqual(both.map(({ opened }) => opened).toSorted(), ["1", "2"])
        yield* first.box.pause
        assert.deepInclude(yield* open(), { id: first.id, opened: "3" })
        yield* Effect.promise(() => ask(socket, "POST", `/containers/${first.id.slice("docker:".length)}/stop?t=0`))
        const [stopped] = yield* DockerSandbox.list({ socket })
        assert.deepInclude(stopped, { state: "stopped", folder: root, image })
        assert.deepInclude(yield* open(), { id: first.id, opened: "4" })
        const other = yield* open({ manifest: { image, environment: { A: "1" } } })
        assert.notStrictEqual(other.id, first.id)
        for (const { id } of yield* DockerSandbox.list({ socket })) yield* DockerSandbox.remove(id, { socket })
        assert.deepStrictEqual(yield* ids, [])
        assert.isTrue(fs.existsSync(root))
      })
    )

    it.effect("ends with its layer, and with its process however that ends", () =>
      Effect.gen(function* () {
        const socket = yield* Engine
        const id = yield* Sandbox.Sandbox.use((box) =>
          Effect.gen(function* () {
            assert.include(yield* ids, box.id)
            assert.deepStrictEqual(yield* Sandbox.Isolated, { by: "docker", network: "none" })
            return box.id
          })
        ).pipe(Effect.provide(DockerSandbox.layer({ socket, manifest: { image } })))
        assert.notInclude(yield* ids, id)

        const root = yield* folder
        const child = spawn(
          process.execPath,
          [
            "--conditions=@effect-deepagents/source",
            join(import.meta.dirname, "../children/container.ts"),
            socket,
            image,
            root
          ],
          { stdio: "ignore" }
        )
        yield* Effect.addFinalizer(() => Effect.sync(() => void child.kill("SIGKILL")))
        yield* until(() => fs.existsSync(join(root, "beat")))
        assert.strictEqual((yield* ids).length, 1)
        const ended = once(child, "exit")
        child.kill("SIGKILL")
        yield* Effect.promise(() => ended)
        while ((yield* ids).length > 0) yield* Effect.sleep("20 millis")
        fs.rmSync(join(root, "beat"), { force: true })
        yield* Effect.sleep("300 millis")
        assert.isFalse(fs.existsSync(join(root, "beat")), "its command has ended too")
      })
    )

    whole("a manifest brings files, repositories, variables and secrets by name", () =>
      Effect.gen(function* () {
        const root = yield* folder
        const git = (...args: ReadonlyArray<string>) =>
          execFileSync("git", ["-c", "user.name=a", "-c", "user.email=a@b", "-C", join(root, "origin"), ...args])
        fs.mkdirSync(join(root, "origin"))
        git("init", "-q", "-b", "main")
        fs.writeFileSync(join(root, "origin/code.txt"), "main")
        git("add", ".")
        git("commit", "-qm", "one")
        git("tag", "v1")
        fs.writeFileSync(join(root, "origin/code.txt"), "later")
        git("commit", "-qam", "two")
        const url = "/workspace/origin"
        const box = yield* start({
          folder: root,
          manifest: {
            image,
            environment: { COLOUR: "it's blue" },
            secrets: ["TOKEN"],
            files: { "/docs/a.md": "# A\n" },
            repositories: [
              { url, path: "/copy" },
              { url, path: "old; touch bad", ref: "v1" }
            ]
          }
        })
        const command = 'echo "$COLOUR $TOKEN"; cat docs/a.md copy/code.txt "old; touch bad/code.txt"; ls'
        assert.strictEqual(
          yield* outputOf(box, command),
          "it's blue {{secret:TOKEN}}\n# A\nlatermaincopy\ndocs\nold; touch bad\norigin"
        )
        const failed = yield* Effect.flip(
          start({ keep: true, manifest: { image, repositories: [{ url: "/nowhere", path: "x" }] } })
        )
        assert.include(failed.message, "/nowhere could not be cloned")
        assert.deepStrictEqual(yield* ids, [box.id], "a container that is half done does not stay")
      })
    )

    it.effect("an egress is its only way to the network, and fills secrets in that it never sees", () =>
      Effect.gen(function* () {
        const socket = yield* Engine
        const server = yield* serve((request, response) => response.end(`for ${request.headers.authorization}`))
        const host = `127.0.0.1:${server.port}`
        const rules = { allow: [host], allowPrivate: [host] }
        const value = "CANARY-docker-5e21"
        const gate = Layer.merge(
          NodeNetwork.layer(rules),
          Secrets.layer({ KEY: { value: Redacted.make(value), hosts: [host] } })
        )
        const box = DockerSandbox.layer({
          socket,
          manifest: { image, secrets: ["KEY"] },
          egress: (listener) => NodeEgress.start({ rules, listener })
        })
        yield* Effect.gen(function* () {
          const sandbox = yield* Sandbox.Sandbox
          assert.deepStrictEqual(yield* Sandbox.Isolated, { by: "docker", network: "rules" })
          const said = yield* outputOf(
            sandbox,
            `echo "$KEY"; wget -q -Y off -O - --header "authorization: $KEY" "$EGRESS_URL/http://${host}/orders"; env; cat /proc/*/environ`
          )
          assert.include(said, "{{secret:KEY}}")
          assert.include(said, "for [secret KEY]")
          assert.notInclude(said, value)
          assert.strictEqual(server.seen[0]?.headers.authorization, value)
          assert.strictEqual(yield* outputOf(sandbox, `wget -q -O - http://${host}/plain`), "for undefined")
          for (const command of [
            "wget -q -T 2 -O - http://other.test/",
            `wget -q -T 2 -O - http://localhost:${server.port}/`,
            `wget -q -Y off -T 2 -O - http://${host}/`,
            `wget -q -Y off -T 2 -O - "$EGRESS_URL/http://other.test/"`
          ]) {
            assert.notStrictEqual((yield* sandbox.execute(command)).exitCode, 0, command)
          }
          assert.lengthOf(server.seen, 2)
          assert.strictEqual(yield* outputOf(sandbox, "ls /sys/class/net"), "lo")
        }).pipe(Effect.provide(Layer.provide(box, gate)))
      })
    )

    whole("a server in it has an address, if the manifest opens a network", () =>
      Effect.gen(function* () {
        const socket = yield* Engine
        const box = yield* start({ manifest: { image, network: "open", ports: [8080] } })
        const server = yield* Effect.forkChild(
          box.execute("echo hello > index.html; busybox httpd -f -p 8080 -h /workspace", { timeout: "1 minute" })
        )
        while ((yield* box.execute("wget -q -O - http://127.0.0.1:8080/")).exitCode !== 0)
          yield* Effect.sleep("50 millis")
        const address = yield* box.address(8080)
        assert.match(address, /^127\.0\.0\.1:\d+$/)
        assert.strictEqual(inNetwork(socket, ["wget", "-q", "-O", "-", `http://${address}/`]), "hello\n")
        assert.include((yield* Effect.flip(box.address(81))).message, "the port 81 is not one of the manifest's")
        yield* Fiber.interrupt(server)
      })
    )

    whole("another user works in it too", () =>
      Effect.gen(function* () {
        const box = yield* start({ user: "1234:1234" })
        yield* box.write("/a.txt", "a".repeat(200_000))
        assert.strictEqual(
          yield* outputOf(box, "id -u; wc -c < a.txt; echo $HOME; ls -A /tmp | grep -v dog$ | grep -v pid$"),
          "1234\n200000\n/tmp\n.effect-deepagents"
        )
      })
    )

    it.effect("failures say what to do", () =>
      Effect.gen(function* () {
        const socket = yield* Engine
        const root = yield* folder
        const messageOf = (options: Partial<DockerSandbox.Options>) =>
          Effect.map(Effect.flip(Effect.scoped(start(options))), ({ message }) => message)
        assert.include(yield* messageOf({ socket: join(root, "none.sock") }), "start Docker")
        assert.include(yield* messageOf({ manifest: { image: "missing:1" } }), "docker pull missing:1")
        assert.include(yield* messageOf({ folder: join(socket, "..") }), "holds the socket")
        assert.include(yield* messageOf({ folder: "/" }), "holds the socket")
        assert.include(yield* messageOf({ folder: join(root, "none") }), "no such file or directory")
        assert.include(yield* messageOf({ manifest: { image, ports: [1] } }), "needs a network")
        const both = { manifest: { image, network: "open" }, egress: () => Effect.succeed({ env: {} }) } as const
        assert.include(yield* messageOf(both), "commands would go around `egress`")
        const unknown: Record<string, unknown> = { image, netwrok: "open" }
        assert.include(yield* messageOf({ manifest: unknown as never }), "netwrok")
        assert.deepStrictEqual(yield* ids, [])
      })
    )
  })
})

describe("without an engine", () => {
  it.effect("lists nothing, and says how to start one", () =>
    Effect.gen(function* () {
      const error = yield* Effect.flip(DockerSandbox.list({ socket: "/nowhere/docker.sock" }))
      assert.include(error.message, "no container engine answers at /nowhere/docker.sock: start Docker")
    })
  )
})
