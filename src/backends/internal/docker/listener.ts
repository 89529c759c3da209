/**
 * Listens in the network of a container: a helper joins that network, and hands its socket to this process. So the
 * container needs no other network, no program of ours, and no socket in a file.
 */
import { spawn } from "node:child_process"
import { readdirSync, readFileSync } from "node:fs"
import { Server } from "node:net"
import * as Effect from "effect/Effect"
import * as Result from "effect/Result"
import type * as Scope from "effect/Scope"
import { type BackendError, make as makeError } from "../../../core/BackendError.ts"
import { toolPath } from "../isolate/holder.ts"
import type { Listener } from "../isolate/options.ts"
import * as System from "../local/system.ts"

/** The time that the helper may take on a busy machine, in milliseconds. */
const startTime = 30_000

const listening = `const s=require("net").createServer();s.listen(0,"127.0.0.1",()=>process.send("listening",s,{},()=>process.exit()))`

const unsupported = (detail: string): BackendError =>
  makeError(
    "open",
    "/",
    { _tag: "Unsupported" },
    {
      detail: `DockerSandbox: egress: ${detail}. It needs an engine on this Linux machine, and its user or root; else give the container a network of the engine by \`network\``
    }
  )

/** Finds a process of a container by its control group: an engine may number processes in a way of its own. */
const findProcess = (container: string): string | undefined =>
  Result.getOrElse(
    System.attempt(() => readdirSync("/proc")),
    () => []
  ).find(
    (id) =>
      /^\d+$/.test(id) &&
      Result.getOrElse(
        System.attempt(() => readFileSync(`/proc/${id}/cgroup`, "utf8")),
        () => ""
      ).includes(container)
  )

const isServer = (handle: unknown): handle is Server => handle instanceof Server

const startHelper = (member: string): Effect.Effect<Server, BackendError> =>
  Effect.callback((resume) => {
    // For root the network is its own to join; for a user it belongs to the user namespace of the engine.
    const join = process.getuid?.() === 0 ? ["-n"] : ["-U", "-n", "--preserve-credentials"]
    const child = spawn("nsenter", ["-t", member, ...join, "--", process.execPath, "-e", listening], {
      stdio: ["ignore", "ignore", "pipe", "ipc"],
      env: { PATH: toolPath },
      timeout: startTime
    })
    let stderr = ""
    child.stderr?.on("data", (bytes: Buffer) => {
      stderr = (stderr + bytes.toString()).slice(-500)
    })
    child.on("message", (_, handle: unknown) => {
      if (isServer(handle)) resume(Effect.succeed(handle))
    })
    child.on("error", (error) => resume(Effect.fail(unsupported(error.message))))
    child.on("close", () => resume(Effect.fail(unsupported(`its network can't be joined: ${stderr.trim()}`))))
    return Effect.sync(() => void child.kill("SIGKILL"))
  })

/** Makes a listener on a free port of a container's loopback. It ends with the scope. */
export const listenIn = (container: string): Effect.Effect<Listener, BackendError, Scope.Scope> =>
  Effect.suspend(() => {
    const member = findProcess(container)
    return member === undefined
      ? Effect.fail(unsupported("no process of the container is on this machine"))
      : Effect.acquireRelease(startHelper(member), (server) => Effect.sync(() => void server.close()))
  })
