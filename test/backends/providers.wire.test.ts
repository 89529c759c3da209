/** The requests that the real SDKs make of a manifest, at servers of this machine that have the shapes of their APIs. */
import { createServer } from "node:http2"
import type { AddressInfo } from "node:net"
import { describe, expect, it } from "@effect/vitest"
import { Effect, Redacted } from "effect"
import type { BackendError } from "effect-deepagents"
import * as DaytonaSandbox from "effect-deepagents/backends/DaytonaSandbox"
import * as E2bSandbox from "effect-deepagents/backends/E2bSandbox"
import * as RunloopSandbox from "effect-deepagents/backends/RunloopSandbox"
import * as VercelSandbox from "effect-deepagents/backends/VercelSandbox"
import { vi } from "vitest"
import { serve } from "../net/servers.ts"

vi.unmock("@daytonaio/sdk")
vi.unmock("@runloop/api-client")
vi.unmock("@vercel/sandbox")
vi.unmock("e2b")

const key = "e2b_0123456789abcdef0123456789abcdef01234567"
const apiKey = Redacted.make(key)

/** The answers to lists. All else is refused: of a machine that is made, the request is looked at. */
const answers: { readonly [call: string]: unknown } = {
  "GET /sandbox": { items: [{ id: "d-1", state: "stopped", toolboxProxyUrl: "http://127.0.0.1:1" }], nextCursor: null },
  "GET /v1/devboxes?status=running": { devboxes: [{ id: "dbx_1" }], has_more: false, total_count: 1 },
  "GET /v1/devboxes?status=suspended": { devboxes: [{ id: "dbx_2" }], has_more: false, total_count: 1 }
}

const answerOf = (method = "", url = "") => {
  const answer = answers[`${method} ${url}`] ?? answers[`${method} ${url.split("?")[0]}`]
  const body = JSON.stringify(answer ?? { message: "refused here", code: 400 })
  return { status: answer === undefined ? 400 : 200, body }
}

const json = { "content-type": "application/json" }

const api = serve((request, response) => {
  const { body, status } = answerOf(request.method, request.url)
  response.writeHead(status, json).end(body)
})

/** The same by HTTP/2, which Runloop's SDK speaks. */
const api2 = Effect.acquireRelease(
  Effect.callback<{ readonly url: string; readonly bodies: Array<unknown>; readonly close: () => void }>((resume) => {
    const bodies: Array<unknown> = []
    const sessions = new Set<{ destroy: () => void }>()
    const server = createServer((request, response) => {
      let sent = ""
      request.on("data", (chunk: Buffer) => (sent += chunk.toString()))
      request.on("end", () => {
        if (sent !== "") bodies.push(JSON.parse(sent))
        const { body, status } = answerOf(request.method, request.url)
        response.writeHead(status, json)
        response.end(body)
      })
    })
    server.on("session", (session) => sessions.add(session))
    const close = () => {
      for (const session of sessions) session.destroy()
      server.close()
    }
    server.listen(0, "127.0.0.1", () => {
      const { port } = server.address() as AddressInfo
      resume(Effect.succeed({ url: `http://127.0.0.1:${port}`, bodies, close }))
    })
  }),
  ({ close }) => Effect.sync(close)
)

const content = { image: "node:24", environment: { CI: "1" } } as const
const limits = { memoryBytes: 2 ** 32, cpus: 2 } as const

/** Makes a machine that the server refuses. */
const expectRefusal = <A, R>(made: Effect.Effect<A, BackendError.BackendError, R>) =>
  Effect.map(Effect.flip(Effect.scoped(made)), (error) => {
    expect(error.reason._tag).toBe("Unavailable")
    expect(error.message).not.toContain(key)
  })

describe("manifests on the wire", () => {
  it.live(
    "are the requests of the providers' own SDKs",
    () =>
      Effect.gen(function* () {
        const { seen, url } = yield* api
        const lastBody = () => JSON.parse(seen.findLast(({ method }) => method === "POST")?.body ?? "null")

        yield* expectRefusal(
          E2bSandbox.make({ apiKey, create: { apiUrl: url }, manifest: { ...content, network: "open", ports: [3000] } })
        )
        expect(lastBody()).toEqual({ templateID: "node:24", envVars: { CI: "1" }, allow_internet_access: true })

        const daytona = { apiKey, apiUrl: url }
        yield* expectRefusal(
          DaytonaSandbox.make({ ...daytona, manifest: { ...content, secrets: ["NPM_TOKEN"], limits } })
        )
        expect(lastBody()).toMatchObject({
          buildInfo: { dockerfileContent: "FROM node:24\n" },
          env: { CI: "1" },
          cpu: 2,
          memory: 4,
          networkBlockAll: true,
          secrets: [{ NPM_TOKEN: "NPM_TOKEN" }]
        })
        yield* expectRefusal(
          DaytonaSandbox.make({ ...daytona, manifest: { image: "snapshot://before", network: "open" } })
        )
        expect(lastBody()).toMatchObject({ snapshot: "before", networkBlockAll: false })
        expect(yield* DaytonaSandbox.list(daytona)).toEqual([{ id: "d-1", state: "stopped" }])

        const vercel = (manifest: VercelSandbox.Manifest) =>
          VercelSandbox.make({
            token: apiKey,
            teamId: "team_1",
            projectId: "prj_1",
            create: {
              runtime: "node22",
              fetch: (input, init) => {
                const { pathname } = new URL(input instanceof Request ? input.url : input)
                return fetch(`${url}${pathname}`, init)
              }
            },
            manifest
          })
        yield* expectRefusal(vercel({ ...content, ports: [3000], network: "open", limits: { cpus: 2 } }))
        expect(lastBody()).toEqual({
          projectId: "prj_1",
          ports: [3000],
          resources: { vcpus: 2 },
          image: "node:24",
          networkPolicy: { mode: "allow-all" },
          env: { CI: "1" }
        })
        yield* expectRefusal(vercel({ image: "snapshot://snap_1" }))
        expect(lastBody()).toEqual({
          projectId: "prj_1",
          ports: [],
          source: { type: "snapshot", snapshotId: "snap_1" },
          networkPolicy: { mode: "deny-all" }
        })

        const { bodies, url: baseURL } = yield* api2
        const runloop = { apiKey, baseURL }
        const manifest = { ...content, network: { name: "np_1" }, ports: [3000], limits }
        yield* expectRefusal(
          RunloopSandbox.make({ ...runloop, create: { launch_parameters: { keep_alive_time_seconds: 60 } }, manifest })
        )
        yield* expectRefusal(
          RunloopSandbox.make({ ...runloop, manifest: { image: "snapshot://snp_1", network: "open" } })
        )
        expect(bodies).toEqual([
          {
            blueprint_name: "node:24",
            environment_variables: { CI: "1" },
            tunnel: { auth_mode: "open" },
            launch_parameters: {
              keep_alive_time_seconds: 60,
              network_policy_id: "np_1",
              resource_size_request: "CUSTOM_SIZE",
              custom_cpu_cores: 2,
              custom_gb_memory: 4
            }
          },
          { snapshot_id: "snp_1", launch_parameters: {} }
        ])
        expect(yield* RunloopSandbox.list(runloop)).toEqual([
          { id: "dbx_1", state: "running" },
          { id: "dbx_2", state: "suspended" }
        ])
      }).pipe(Effect.scoped),
    30_000
  )
})
