/**
 * A real container engine for tests: `dockerd` from the PATH, in namespaces of its own (network, mounts, processes), so
 * that nothing of it is left on the machine. Its one image is made of busybox and git.
 */
import { execFileSync, spawn, spawnSync } from "node:child_process"
import { once } from "node:events"
import { chmodSync, copyFileSync, existsSync, mkdirSync, mkdtempSync, rmSync, symlinkSync } from "node:fs"
import { request } from "node:http"
import { tmpdir } from "node:os"
import { dirname, join } from "node:path"
import { Context, Effect, Layer } from "effect"

const busybox = "/bin/busybox"

/** Whether there is one. Without it the suites on containers are left out, and `test/announce.ts` says so. */
export const hasDocker =
  process.getuid?.() === 0 && spawnSync("dockerd", ["--version"]).status === 0 && existsSync(busybox)

/** What to do about it. */
export const howToInstall =
  "The suites on containers need root, dockerd and a static busybox: apt-get install docker.io busybox-static."

export const image = "sandbox:test"

/** Copies a program of this machine with its libraries. */
const copyProgram = (root: string, program: string) => {
  const libraries = [...String(execFileSync("ldd", [program])).matchAll(/(\/\S+)/g)].flatMap(([, path]) => path ?? [])
  for (const file of [program, ...libraries]) {
    mkdirSync(dirname(root + file), { recursive: true })
    copyFileSync(file, root + file)
  }
}

const makeImage = (parent: string): Buffer => {
  const root = join(parent, "image")
  for (const folder of ["bin", "tmp", "etc", "proc", "sys", "dev"]) mkdirSync(join(root, folder), { recursive: true })
  chmodSync(join(root, "tmp"), 0o1777)
  copyFileSync(busybox, join(root, "bin/busybox"))
  for (const applet of String(execFileSync(busybox, ["--list"]))
    .trim()
    .split("\n")) {
    if (applet !== "busybox") symlinkSync("busybox", join(root, "bin", applet))
  }
  copyProgram(root, "/usr/bin/git")
  for (const part of ["git-upload-pack", "git-index-pack", "git-unpack-objects"]) {
    mkdirSync(join(root, "usr/lib/git-core"), { recursive: true })
    symlinkSync("/usr/bin/git", join(root, "usr/lib/git-core", part))
  }
  symlinkSync("git", join(root, "usr/bin/git-upload-pack"))
  return execFileSync("tar", ["-C", root, "-c", "."], { maxBuffer: 2 ** 28 })
}

/** Asks the engine, beside the code under test. */
export const ask = (socket: string, method: string, path: string, body?: Buffer): Promise<string> =>
  new Promise((resolve, reject) => {
    const sent = request({ socketPath: socket, method, path, headers: { "content-type": "application/x-tar" } })
    sent.on("error", reject)
    sent.on("response", (incoming) => {
      const chunks: Array<Buffer> = []
      incoming.on("data", (chunk: Buffer) => void chunks.push(chunk))
      incoming.on("error", reject)
      incoming.on("end", () => resolve(Buffer.concat(chunks).toString()))
    })
    sent.end(body)
  })

const startEngine = async (parent: string) => {
  const socket = join(parent, "docker.sock")
  const folders = ["--data-root", join(parent, "data"), "--exec-root", join(parent, "exec")]
  const quiet = ["--pidfile", join(parent, "pid"), "--iptables=false", "--ip6tables=false"]
  const daemon = ["dockerd", "-H", `unix://${socket}`, ...folders, ...quiet]
  const namespaces = ["--net", "--mount", "--pid", "--fork", "--kill-child=KILL", "--mount-proc"]
  const loopback = `${busybox} ip link set lo up; exec "$@"`
  const engine = spawn("unshare", [...namespaces, busybox, "sh", "-c", loopback, "sh", ...daemon], {
    stdio: ["ignore", "ignore", "pipe"]
  })
  let log = ""
  engine.stderr.on("data", (chunk: Buffer) => (log = (log + String(chunk)).slice(-4_000)))
  const ended = once(engine, "exit")
  for (let tries = 0; ; tries++) {
    const answer = await ask(socket, "GET", "/_ping").catch(() => "")
    if (answer === "OK") return { socket, engine, ended }
    if (engine.exitCode !== null || tries > 600) {
      engine.kill("SIGKILL")
      throw new Error(`dockerd does not start here, so the suites on containers can't run:\n${log}`)
    }
    await new Promise((resolve) => setTimeout(resolve, 100))
  }
}

/** The socket of an engine of its own, with its image. */
export const docker = Effect.gen(function* () {
  const parent = yield* Effect.acquireRelease(
    Effect.sync(() => mkdtempSync(join(tmpdir(), "docker-"))),
    (folder) => Effect.sync(() => rmSync(folder, { recursive: true, force: true, maxRetries: 20, retryDelay: 100 }))
  )
  const { socket } = yield* Effect.acquireRelease(
    Effect.promise(() => startEngine(parent)),
    ({ ended, engine }) =>
      Effect.promise(async () => {
        // The engine and not its parent, which reaps it; with it, all of its processes end.
        spawnSync("pkill", ["-TERM", "-P", String(engine.pid)])
        const late = setTimeout(() => spawnSync("pkill", ["-KILL", "-P", String(engine.pid)]), 10_000)
        await ended
        clearTimeout(late)
      })
  )
  yield* Effect.promise(() => ask(socket, "POST", "/images/create?fromSrc=-&repo=sandbox&tag=test", makeImage(parent)))
  return socket
})

/** The engine of a test file. */
export class Engine extends Context.Service<Engine, string>()("test/Engine") {
  static readonly layer = Layer.effect(Engine, docker)
}

/** Runs a program of busybox in the network of the engine, on whose loopback the ports of containers are. */
export const inNetwork = (socket: string, args: ReadonlyArray<string>): string => {
  const [pid = ""] = String(execFileSync("pgrep", ["-f", `dockerd -H unix://${socket}`]))
    .trim()
    .split("\n")
    .slice(-1)
  return String(execFileSync("nsenter", ["-t", pid, "-n", busybox, ...args]))
}
