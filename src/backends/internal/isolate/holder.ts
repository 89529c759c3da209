/**
 * The network of a sandbox: a process that does nothing but keep a network namespace, which each command joins. So a
 * server that one command starts answers the next one. The namespace has its own loopback and no other interface.
 *
 * With an egress, the process first makes a listening socket in the namespace, and hands it over. No socket lies in a
 * file, and no process relays.
 */
import { type ChildProcess, spawn } from "node:child_process"
import { existsSync } from "node:fs"
import { Server } from "node:net"
import * as Effect from "effect/Effect"
import type * as Scope from "effect/Scope"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import type { Listener } from "./options.ts"

/** Where bubblewrap and its helpers are looked up: nowhere that an agent can write. */
export const toolPath = "/usr/bin:/bin:/usr/local/bin:/run/current-system/sw/bin"

/** Finds a helper. The name alone would be looked up by variables of the command. */
export const findTool = (name: string): string | undefined =>
  toolPath
    .split(":")
    .map((folder) => `${folder}/${name}`)
    .find((path) => existsSync(path))

/** The process, by its id on this machine. */
export interface Holder {
  readonly pid: number
  readonly listener: Listener | undefined
}

const port = 3128

/** The time that it may take to start on a busy machine, in milliseconds. */
const startTime = 60_000

/** It closes its own copy of the socket. Otherwise it would get every second connection, and never answer. */
const listening = `process.stdin.on("close",()=>process.exit()).resume();const s=require("net").createServer();s.listen(${port},"127.0.0.1",()=>process.send("listening",s,{},()=>{s.close();process.disconnect();setInterval(()=>{},2**30)}))`

const argumentsOf = (system: ReadonlyArray<string>, program: ReadonlyArray<string>): ReadonlyArray<string> => [
  "--unshare-all",
  "--die-with-parent",
  "--new-session",
  "--cap-drop",
  "ALL",
  ...system,
  "--proc",
  "/proc",
  // With `--dev`, bubblewrap makes a second user namespace for users, and the network belongs to the first.
  "--dev-bind",
  "/dev/null",
  "/dev/null",
  "--dev-bind",
  "/dev/urandom",
  "/dev/urandom",
  "--clearenv",
  "--setenv",
  "NODE_CHANNEL_FD",
  "3",
  "--info-fd",
  "4",
  "--",
  ...program
]

/** The end of what bubblewrap says about a failure. */
const maxDetail = 500

const isServer = (handle: unknown): handle is Server => handle instanceof Server

const start = (system: ReadonlyArray<string>, listens: boolean) =>
  Effect.callback<Holder & { readonly child: ChildProcess }, BackendError>((resume) => {
    const program = listens ? [process.execPath, "-e", listening] : ["/bin/sh", "-c", "echo ready; read -r end"]
    const child = spawn("bwrap", argumentsOf(system, program), {
      // The end of the input ends the program, also after a `kill -9` of this process.
      stdio: ["pipe", "pipe", "pipe", listens ? "ipc" : "ignore", "pipe"],
      env: { PATH: toolPath }
    })
    const out = child.stdio[4]
    let info = ""
    let stderr = ""
    let listener: Server | undefined
    // Its id is known before it may be joined: until it runs, its namespaces are not set up.
    let isReady = false
    let isOpen = false
    const fail = (detail: string) => {
      clearTimeout(timer)
      child.kill("SIGKILL")
      resume(Effect.fail(makeError("open", "/", { _tag: "Unsupported" }, { detail })))
    }
    const settle = () => {
      const pid = /"child-pid"\s*:\s*(\d+)/.exec(info)?.[1]
      if (isOpen || pid === undefined || !info.includes("}") || !isReady) return
      isOpen = true
      clearTimeout(timer)
      child.unref()
      resume(Effect.succeed({ pid: Number(pid), listener, child }))
    }
    const timer = setTimeout(() => fail("bubblewrap did not start in time"), startTime)
    child.stdin?.on("error", () => undefined)
    out?.on("data", (bytes: Buffer) => {
      info += bytes.toString()
      settle()
    })
    child.stdout?.on("data", () => {
      isReady = true
      settle()
    })
    child.stderr?.on("data", (bytes: Buffer) => {
      stderr = (stderr + bytes.toString()).slice(-maxDetail)
    })
    child.on("message", (_, handle: unknown) => {
      if (!isServer(handle)) return
      listener = handle
      isReady = true
      settle()
    })
    child.on("error", (error) => fail(`bubblewrap can't be started: ${error.message}`))
    child.on("close", () => fail(`bubblewrap can't isolate commands here: ${stderr.trim()}`))
  })

/** Starts the process. The end of the scope ends it, and with it the network. */
export const hold = (
  system: ReadonlyArray<string>,
  listens: boolean
): Effect.Effect<Holder, BackendError, Scope.Scope> =>
  Effect.acquireRelease(start(system, listens), ({ child, listener }) =>
    Effect.sync(() => {
      child.kill("SIGKILL")
      listener?.close()
    })
  )
