/** The built page behind a server: a real one, or one that sends recorded frames. */
import { execFile } from "node:child_process"
import { mkdtemp, readdir, readFile } from "node:fs/promises"
import { createServer, type IncomingMessage, type ServerResponse } from "node:http"
import type { AddressInfo } from "node:net"
import { tmpdir } from "node:os"
import { join } from "node:path"
import { promisify } from "node:util"
import { AgentEvent } from "effect-deepagents"
import * as Effect from "effect/Effect"

const run = promisify(execFile)

/** Builds the page once for all tests of this process. */
let built: Promise<string> | undefined
export const buildPage = (): Promise<string> => {
  built ??= (async () => {
    const folder = await mkdtemp(join(tmpdir(), "page-"))
    await run(process.execPath, ["node_modules/rolldown/bin/cli.mjs", "--config", "scripts/page.rolldown.mjs"], {
      env: { ...process.env, PAGE_DIST: folder }
    })
    return join(folder, "page")
  })()
  return built
}

/** The policy of the page, as the server sends it. */
const policy = [
  "default-src 'none'",
  "script-src 'self'",
  "style-src 'self'",
  "connect-src 'self'",
  "img-src 'self' blob: data:",
  "frame-src 'self'",
  "base-uri 'none'",
  "form-action 'none'",
  "frame-ancestors 'none'",
  "require-trusted-types-for 'script'"
].join("; ")

export type Frame =
  | { readonly _tag: "Event"; readonly position: string; readonly event: AgentEvent.AgentEvent }
  | { readonly _tag: "Reset"; readonly position: string; readonly to: "beginning" | "checkpoint" }

/** A server of one thread, whose frames the test tells. */
export interface Told {
  readonly url: string
  /** Tells frames to all readers, and to later ones. */
  readonly tell: (frames: ReadonlyArray<Frame>) => void
  /** Cuts all connections. */
  readonly cut: () => void
  /** The posted bodies, by path. */
  readonly posted: ReadonlyArray<{ readonly path: string; readonly body: unknown }>
  readonly paths: ReadonlyArray<string>
}

const write = (frame: Frame): string =>
  frame._tag === "Reset"
    ? `id: ${frame.position}\nevent: reset\ndata: ${JSON.stringify({ to: frame.to })}\n\n`
    : `id: ${frame.position}\nevent: event\ndata: ${JSON.stringify(AgentEvent.encode(frame.event))}\n\n`

const types: ReadonlyMap<string, string> = new Map([
  ["html", "text/html; charset=utf-8"],
  ["js", "text/javascript; charset=utf-8"],
  ["css", "text/css; charset=utf-8"]
])

interface Fixed {
  readonly threads?: ReadonlyArray<object>
  readonly inbox?: ReadonlyArray<object>
  readonly agents?: ReadonlyArray<object>
}

/** Serves the page, and a thread `t` of frames. */
export const tellFrames = Effect.fnUntraced(function* (first: ReadonlyArray<Frame>, fixed: Fixed = {}) {
  const folder = yield* Effect.promise(buildPage)
  const files = new Map(
    yield* Effect.promise(async () =>
      Promise.all(
        (await readdir(folder)).map(async (name): Promise<readonly [string, Buffer]> => [
          `/${name}`,
          await readFile(join(folder, name))
        ])
      )
    )
  )
  const told = [...first]
  const posted: Array<Told["posted"][number]> = []
  const paths: Array<string> = []
  const readers = new Set<ServerResponse>()
  const json = (response: ServerResponse, body: unknown, status = 200) => {
    response.writeHead(status, { "content-type": "application/json" })
    response.end(JSON.stringify(body))
  }
  const answer = (request: IncomingMessage, response: ServerResponse, body: string): void => {
    const url = new URL(request.url ?? "/", "http://localhost")
    const path = url.pathname === "/" ? "/index.html" : url.pathname
    paths.push(path)
    const file = files.get(path)
    if (file !== undefined) {
      const type = types.get(path.split(".").at(-1) ?? "") ?? "text/plain"
      response.writeHead(200, { "content-type": type, "content-security-policy": policy })
      response.end(file)
      return
    }
    if (request.method === "POST") {
      posted.push({ path, body: body === "" ? undefined : JSON.parse(body) })
      return json(response, { runId: "r", position: "", isNew: true }, 202)
    }
    if (path === "/agents") return json(response, { agents: fixed.agents ?? [{ name: "helper" }] })
    if (path === "/inbox") return json(response, { items: fixed.inbox ?? [] })
    if (path === "/threads")
      return json(response, { threads: fixed.threads ?? [{ id: "t", title: "A thread", updatedAt: 0 }] })
    if (path === "/threads/t/events") {
      const after = url.searchParams.get("after")
      const at = told.findIndex(({ position }) => position === after)
      response.writeHead(200, { "content-type": "text/event-stream" })
      response.write(
        `: hello\n\n${told
          .slice(at + 1)
          .map(write)
          .join("")}`
      )
      readers.add(response)
      response.on("close", () => readers.delete(response))
      return
    }
    json(response, { detail: "There is no such thing." }, 404)
  }
  const server = yield* Effect.acquireRelease(
    Effect.promise(
      () =>
        new Promise<ReturnType<typeof createServer>>((resolve) => {
          const made = createServer((request, response) => {
            const chunks: Array<Buffer> = []
            request.on("data", (chunk: Buffer) => chunks.push(chunk))
            request.on("end", () => answer(request, response, Buffer.concat(chunks).toString()))
          })
          made.listen(0, "127.0.0.1", () => resolve(made))
        })
    ),
    (made) =>
      Effect.promise(
        () =>
          new Promise<void>((done) => {
            made.close(() => done())
            made.closeAllConnections()
          })
      )
  )
  const { port } = server.address() as AddressInfo
  return {
    url: `http://127.0.0.1:${port}`,
    tell: (frames) => {
      told.push(...frames)
      for (const reader of readers) reader.write(frames.map(write).join(""))
    },
    cut: () => server.closeAllConnections(),
    posted,
    paths
  } satisfies Told
})

/** The fields of an event, without the fields of all events. */
type Fields<E> = E extends AgentEvent.AgentEvent
  ? Omit<E, "at" | "path" | "runId" | "seq"> & Partial<Pick<E, "at" | "path" | "runId">>
  : never

const start = Date.now()

/** Makes frames of events. */
export const framesOf = (events: ReadonlyArray<Fields<AgentEvent.AgentEvent>>, from = 0): ReadonlyArray<Frame> =>
  events.map((fields, index) => {
    const seq = from + index
    const event = { seq, runId: "r", path: ["helper"], at: start + seq, ...fields } as AgentEvent.AgentEvent
    return { _tag: "Event", position: `p${seq}`, event }
  })
