/**
 * The process of the shell: it runs one command line after the other, and requests every file access. Its parent kills
 * it on a timeout. A separate thread checks its memory and its parent, since a command may block the shell.
 */
import { fileURLToPath } from "node:url"
import { isMainThread, Worker } from "node:worker_threads"
import type * as JustBash from "just-bash"
import { meetingLinks, writingBytes } from "./commands.ts"
import { outputText } from "./encoding.ts"
import { complaintOf } from "./errors.ts"
import type { Answer, Call, Order, Report, Run } from "./messages.ts"
import * as RemoteFiles from "./remoteFiles.ts"
import { prepare, readable } from "./script.ts"

/** The most memory that this process may have, in bytes. */
const mostMemory = 768 * 1024 * 1024

/** Interval between two looks of the thread, in milliseconds. */
const interval = 50

/** No more than this many bytes are written by a command before it is ended. */
const mostOutput = 32 * 1024 * 1024

/** The longest text in a message, in characters. */
const longestText = 256 * 1024

/** The longest time that a timer takes, in milliseconds. */
const longestTime = 2 ** 31 - 1

const watch = (): void => {
  const parent = process.ppid
  setInterval(() => {
    if (process.ppid !== parent || process.memoryUsage.rss() > mostMemory) process.kill(process.pid, "SIGKILL")
  }, interval)
}

/**
 * just-bash removes timers, messages and more from its commands. A loop that was started before sends their
 * messages.
 */
const makePost = (send: (reports: ReadonlyArray<Report>) => void) => {
  let waiting: Array<Report> = []
  let wake: (() => void) | undefined
  const pump = async (): Promise<void> => {
    for (;;) {
      if (waiting.length === 0) {
        await new Promise<void>((resolve) => {
          wake = resolve
        })
      }
      const reports = waiting
      waiting = []
      send(reports)
    }
  }
  void pump()
  return (report: Report): void => {
    const last = waiting.at(-1)
    const isMore =
      report._tag === "Output" &&
      last?._tag === "Output" &&
      last.run === report.run &&
      last.channel === report.channel &&
      last.text.length + report.text.length <= longestText
    if (isMore) waiting[waiting.length - 1] = { ...report, text: last.text + report.text }
    else waiting.push(report)
    wake?.()
  }
}

type Post = (report: Report) => void

/** The messages of the shell when its own clock or a signal ends a command, at the end of the output. */
const lateness = /\S+: (?:\S+ exceeded (?:its )?execution deadline(?: \(\d+ms\))?|execution aborted)\n$/
const longestLateness = 1024

/** A command may have no clock, or a forged one. */
const now = performance.now.bind(performance)

const shellOf = (justBash: typeof JustBash, post: Post) => {
  const open = new Map<number, (answer: Answer) => void>()
  let asks = 0
  let current: AbortController | undefined

  const fail = (run: number, cause: unknown): void =>
    post({ _tag: "Failed", run, problem: cause instanceof Error ? cause.message : String(cause) })

  const start = async (order: Run): Promise<void> => {
    const { command, cwd, env, limit, maxCallDepth, maxCommands, maxLoopIterations, network, run, stdin } = order
    const begun = now()
    const controller = new AbortController()
    current = controller
    const ask = (call: Call): Promise<Answer> =>
      new Promise((resolve) => {
        asks += 1
        open.set(asks, resolve)
        post({ _tag: "Ask", run, ask: asks, call })
      })
    const decoders = {
      stdout: new TextDecoder("utf-8", { ignoreBOM: true }),
      stderr: new TextDecoder("utf-8", { ignoreBOM: true })
    }
    const say = (channel: "stdout" | "stderr", text: string): void => {
      for (let from = 0; from < text.length; from += longestText) {
        post({ _tag: "Output", run, channel, text: text.slice(from, from + longestText) })
      }
    }
    const putOutput = async (channel: "stdout" | "stderr", bytes: Uint8Array): Promise<void> =>
      say(channel, readable(decoders[channel].decode(bytes, { stream: true }), files.complaints))
    const files = RemoteFiles.make({ ask, put: putOutput }, order.hasPrograms)
    const bash = new justBash.Bash({
      fs: files.fs,
      customCommands: [...writingBytes(justBash), ...meetingLinks(justBash, files.treat)],
      cwd,
      env: { ...env },
      executionLimits: {
        maxCallDepth,
        maxCommandCount: maxCommands,
        maxLoopIterations,
        maxAwkIterations: maxLoopIterations,
        maxSedIterations: maxLoopIterations,
        maxJqIterations: maxLoopIterations,
        maxOutputSize: mostOutput,
        maxExecutionTimeMs: Math.max(1, Math.min(limit, longestTime))
      },
      ...(network === undefined ? {} : { network: { allowedUrlPrefixes: [...network], denyPrivateRanges: true } })
    })
    let isOutermost = true
    bash.registerTransformPlugin({
      name: "effect-deepagents",
      transform: ({ ast }) => {
        const prepared = prepare(command, ast, isOutermost)
        isOutermost = false
        return { ast: prepared }
      }
    })
    const finish = (stdout: string, stderr: string, exitCode: number): void => {
      say("stdout", readable(decoders.stdout.decode() + stdout, files.complaints))
      const end = stderr.slice(-longestLateness)
      // A command can say so itself.
      const isOver = now() - begun + 1 >= limit
      const isLate = controller.signal.aborted || (exitCode === 124 && isOver && lateness.test(end))
      const errors = isLate ? stderr.slice(0, -longestLateness) + end.replace(lateness, "") : stderr
      say("stderr", readable(decoders.stderr.decode() + errors, files.complaints))
      post({ _tag: "Done", run, exitCode, isLate, rss: process.memoryUsage.rss() })
    }
    await bash.exec(command, { signal: controller.signal, rawScript: true, stdin }).then(
      ({ exitCode, stderr, stdout, stdoutKind }) => finish(outputText(stdout, stdoutKind), stderr, exitCode),
      (cause: unknown) => {
        const complaint = complaintOf(cause)
        if (complaint !== undefined) return finish("", complaint, 1)
        return fail(run, cause)
      }
    )
    // The command has abandoned pending requests.
    open.clear()
  }

  return (order: Order): void => {
    switch (order._tag) {
      case "Run":
        // A shell refuses options, before it runs anything.
        return void start(order).catch((cause: unknown) => fail(order.run, cause))
      case "Abort":
        return current?.abort()
      case "Answer":
        open.get(order.ask)?.(order)
        return void open.delete(order.ask)
    }
  }
}

const isOrder = (message: unknown): message is Order =>
  typeof message === "object" && message !== null && "_tag" in message

const serve = async (send: (reports: ReadonlyArray<Report>) => void): Promise<void> => {
  const leave = process.exit.bind(process)
  process.once("disconnect", () => leave())
  // The starter of this process may have gone meanwhile.
  if (!process.connected) leave()
  // Ctrl-C in a terminal is for the starter.
  process.on("SIGINT", () => undefined)
  // Abandoned requests of a command have no handler.
  process.on("unhandledRejection", () => undefined)
  const post = makePost(send)
  const guard = new Worker(fileURLToPath(import.meta.url), { resourceLimits: { maxOldGenerationSizeMb: 32 } })
  guard.unref()
  const orders: Array<Order> = []
  let take = (order: Order): void => void orders.push(order)
  process.on("message", (message) => {
    if (isOrder(message)) take(message)
  })
  await import("just-bash").then(
    (justBash) => {
      take = shellOf(justBash, post)
      post({ _tag: "Ready" })
      for (const order of orders) take(order)
    },
    (cause: unknown) => post({ _tag: "Unusable", problem: cause instanceof Error ? cause.message : String(cause) })
  )
}

const send = process.send?.bind(process)
if (!isMainThread) watch()
// After the channel closes, no one waits for messages.
else if (send !== undefined) await serve((reports) => void send(reports, undefined, undefined, () => undefined))
