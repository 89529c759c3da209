/** An editor for tests, by the package's own client: it has buffers, terminals, a person, and checks all messages. */
import { spawn } from "node:child_process"
import { existsSync, mkdtempSync, readFileSync, realpathSync } from "node:fs"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { type Readable, Writable } from "node:stream"
import * as acp from "@agentclientprotocol/sdk"
import { Deferred, Effect, Sink, Stdio, Stream } from "effect"
import { makeChecks } from "./checked.ts"

export const makeFolder = (): string => realpathSync(mkdtempSync(join(tmpdir(), "deepagents-acp-")))

/** A person's answer: an option by its id, or by its kind. */
export type Person = (
  request: acp.RequestPermissionRequest,
  signal: AbortSignal
) => Promise<acp.RequestPermissionResponse> | acp.RequestPermissionResponse

export const choose =
  (kind: acp.PermissionOptionKind): Person =>
  ({ options }) => {
    const option = options.find((one) => one.kind === kind)
    return option === undefined
      ? { outcome: { outcome: "cancelled" } }
      : { outcome: { outcome: "selected", optionId: option.optionId } }
  }

interface Shell {
  output: string
  readonly exit: Promise<acp.WaitForTerminalExitResponse>
  readonly kill: () => void
}

export const everything: acp.ClientCapabilities = {
  fs: { readTextFile: true, writeTextFile: true },
  terminal: true,
  elicitation: { form: {} },
  session: { compaction: {}, notices: {}, configOptions: {} },
  auth: { terminal: true }
}

/** Connects an editor to streams of bytes. */
const connectEditor = (input: ReadableStream<Uint8Array>, output: WritableStream<Uint8Array>, isChecked = true) => {
  const checks = makeChecks()
  const fromAgent = checks.tap("agent")
  const fromClient = checks.tap("client")
  const tapped = (tap: (bytes: Uint8Array) => void) =>
    new TransformStream<Uint8Array, Uint8Array>({
      transform: (chunk, controller) => {
        if (isChecked) tap(chunk)
        controller.enqueue(chunk)
      }
    })
  const out = tapped(fromClient)
  const leaving = new AbortController()
  const piped = out.readable.pipeTo(output, { signal: leaving.signal, preventAbort: true }).catch(() => {})
  const updates: Array<acp.SessionNotification> = []
  let seen = 0
  const asked: Array<acp.RequestPermissionRequest> = []
  const forms: Array<acp.CreateElicitationRequest> = []
  const buffers = new Map<string, string>()
  const written = new Map<string, string>()
  const read: Array<string> = []
  const terminals = new Map<string, Shell>()
  const listeners = new Set<() => void>()
  const editor = {
    person: choose("allow_once"),
    fill: (_: acp.CreateElicitationRequest): acp.CreateElicitationResponse => ({ action: "cancel" })
  }
  const changed = () => {
    for (const listener of listeners) listener()
  }
  const connection = acp
    .client({ name: "editor" })
    .onRequest("session/request_permission", ({ params, signal }) => {
      asked.push(params)
      changed()
      return editor.person(params, signal)
    })
    .onRequest("elicitation/create", ({ params }) => {
      forms.push(params)
      return editor.fill(params)
    })
    .onRequest("fs/read_text_file", ({ params: { path } }) => {
      read.push(path)
      const buffer = buffers.get(path)
      if (buffer !== undefined) return { content: buffer }
      if (!existsSync(path)) throw acp.RequestError.resourceNotFound(path)
      return { content: readFileSync(path, "utf8") }
    })
    .onRequest("fs/write_text_file", ({ params: { content, path } }) => {
      buffers.set(path, content)
      written.set(path, content)
      return {}
    })
    .onRequest("terminal/create", ({ params }) => {
      const terminalId = `terminal-${terminals.size + 1}`
      const child = spawn(params.command, params.args ?? [], { cwd: params.cwd ?? undefined })
      const shell: Shell = {
        output: "",
        exit: new Promise((resolve) => child.on("exit", (exitCode, signal) => resolve({ exitCode, signal }))),
        kill: () => void child.kill("SIGKILL")
      }
      child.stdout.on("data", (data) => (shell.output += String(data)))
      child.stderr.on("data", (data) => (shell.output += String(data)))
      terminals.set(terminalId, shell)
      changed()
      return { terminalId }
    })
    .onRequest("terminal/wait_for_exit", ({ params }) => shellOf(params.terminalId).exit)
    .onRequest("terminal/output", ({ params }) => ({ output: shellOf(params.terminalId).output, truncated: false }))
    .onRequest("terminal/kill", ({ params }) => {
      shellOf(params.terminalId).kill()
      return {}
    })
    .onRequest("terminal/release", () => ({}))
    .onNotification("session/update", ({ params }) => {
      updates.push(params)
      seen += 1
      changed()
    })
    .connect(acp.ndJsonStream(out.writable, input.pipeThrough(tapped(fromAgent))))
  const shellOf = (id: string): Shell => {
    const shell = terminals.get(id)
    if (shell === undefined) throw acp.RequestError.resourceNotFound(id)
    return shell
  }
  const { agent } = connection
  /** Waits for a condition on the editor's updates. */
  const until = (isThere: () => boolean): Promise<void> =>
    new Promise((resolve) => {
      const look = () => {
        if (!isThere()) return
        listeners.delete(look)
        resolve()
      }
      listeners.add(look)
      look()
    })
  const countUpdates = () => checks.methods.filter((method) => method === "agent:session/update").length
  const settled = () => until(() => seen >= countUpdates())
  return {
    editor,
    agent,
    connection,
    checks,
    updates,
    asked,
    forms,
    buffers,
    written,
    read,
    terminals,
    until,
    initialize: (clientCapabilities: acp.ClientCapabilities = everything) =>
      agent.request("initialize", { protocolVersion: acp.PROTOCOL_VERSION, clientCapabilities }),
    open: (cwd: string, mcpServers: Array<acp.McpServer> = []) => agent.request("session/new", { cwd, mcpServers }),
    /** Prompts, and waits for all updates of the turn: the package handles them after the answer. */
    prompt: async (sessionId: string, text: string) => {
      const answer = await agent.request("session/prompt", { sessionId, prompt: [{ type: "text", text }] })
      await settled()
      return answer
    },
    settled: () => settled(),
    /** Ends as an editor that dies: its end of the wire is closed. */
    leave: async () => {
      leaving.abort()
      await piped
      await output.close()
      connection.close()
    },
    /** The updates since the last call. */
    taken: () => updates.splice(0).map(({ update }) => update),
    text: () =>
      updates
        .map(({ update }) =>
          update.sessionUpdate === "agent_message_chunk" && update.content.type === "text" ? update.content.text : ""
        )
        .join("")
  }
}

/** Reads a pipe. The package may cancel the stream before the pipe closes. */
const readBytes = (stream: Readable) => {
  let isOpen = true
  return new ReadableStream<Uint8Array>({
    start: (controller) => {
      stream.on("data", (chunk: Buffer) => {
        if (isOpen) controller.enqueue(chunk)
      })
      stream.on("close", () => {
        if (isOpen) controller.close()
        isOpen = false
      })
    },
    cancel: () => {
      isOpen = false
    }
  })
}

/** Serves in this process on streams of bytes. `over` is done when the server has ended. */
export const openServer = Effect.fnUntraced(function* <E, R>(server: Effect.Effect<void, E, R | Stdio.Stdio>) {
  const toServer = new TransformStream<Uint8Array, Uint8Array>()
  const toEditor = new TransformStream<Uint8Array, Uint8Array>()
  const writer = toEditor.writable.getWriter()
  const stdio = Stdio.make({
    args: Effect.succeed([]),
    stdin: Stream.orDie(Stream.fromReadableStream({ evaluate: () => toServer.readable, onError: String })),
    stdout: () =>
      Sink.forEach((chunk: string | Uint8Array) =>
        Effect.promise(() => writer.write(typeof chunk === "string" ? Buffer.from(chunk) : chunk))
      ),
    stderr: () => Sink.drain
  })
  const over = yield* Deferred.make<void, E>()
  yield* Effect.forkScoped(Deferred.into(Effect.provideService(server, Stdio.Stdio, stdio), over))
  return { output: toEditor.readable, input: toServer.writable, over: Deferred.await(over) }
})

/** Starts a program that serves, with an editor at the other end. */
export const openProgram = (...args: ReadonlyArray<string>) =>
  Effect.acquireRelease(
    Effect.sync(() => {
      const child = spawn(process.execPath, args, { stdio: ["pipe", "pipe", "inherit"] })
      const over = new Promise<void>((resolve) => child.on("exit", () => resolve()))
      const editor = connectEditor(readBytes(child.stdout), Writable.toWeb(child.stdin))
      return { ...editor, over, kill: () => void child.kill("SIGKILL") }
    }),
    ({ connection, kill }) =>
      Effect.sync(() => {
        kill()
        connection.close()
      })
  )

/** Serves in this process, with an editor at the other end. */
export const openEditor = Effect.fnUntraced(function* <E, R>(server: Effect.Effect<void, E, R | Stdio.Stdio>) {
  const { input, output, over } = yield* openServer(server)
  const editor = connectEditor(output, input)
  yield* Effect.addFinalizer(() => Effect.sync(() => editor.connection.close()))
  return { ...editor, over }
})
