/**
 * A meeting that is booked over two connectors, with one approval: the agent looks when everybody is free, and asks once
 * for the event and the message together. Calendar and chat are a server on this machine.
 */
import assert from "node:assert/strict"
import { createServer, type IncomingMessage } from "node:http"
import type { AddressInfo } from "node:net"
import { text } from "node:stream/consumers"
import { NodeRuntime } from "@effect/platform-node"
import { Console, Effect, Layer, Redacted } from "effect"
import { Agent, Approval, Checkpoint } from "effect-deepagents"
import { Connection, GoogleCalendar, Slack } from "effect-deepagents/connect"
import { HumanInTheLoop } from "effect-deepagents/middleware"
import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
import { TestChatModel } from "effect-deepagents/testing"
import { FetchHttpClient } from "effect/http"

/** What the services were asked to change. */
const changes: Array<unknown> = []

const answer = async (request: IncomingMessage): Promise<unknown> => {
  assert.equal(request.headers.authorization, "Bearer of-ada")
  const body: unknown = JSON.parse((await text(request)) || "null")
  switch (`${request.method} ${new URL(request.url ?? "/", "http://localhost").pathname}`) {
    case "POST /calendar/v3/freeBusy":
      return {
        calendars: { "grace@example.com": { busy: [{ start: "2026-03-02T09:00:00Z", end: "2026-03-02T10:00:00Z" }] } }
      }
    case "POST /calendar/v3/calendars/primary/events":
      changes.push(body)
      return { id: "event-1", status: "confirmed", htmlLink: "https://calendar.example.com/event-1" }
    case "POST /api/chat.postMessage":
      changes.push(body)
      return { ok: true, channel: "C1", ts: "1.1" }
    default:
      return { ok: false, error: "unknown_method" }
  }
}

const server = Effect.acquireRelease(
  Effect.promise(async () => {
    const http = createServer((request, response) => {
      void answer(request).then((body) =>
        response.writeHead(200, { "content-type": "application/json" }).end(JSON.stringify(body))
      )
    })
    await new Promise<void>((resolve) => http.listen(0, "127.0.0.1", resolve))
    return http
  }),
  (http) => Effect.sync(() => http.closeAllConnections())
).pipe(
  Effect.tap((http) => Effect.addFinalizer(() => Effect.sync(() => http.close()))),
  Effect.map((http) => `http://127.0.0.1:${(http.address() as AddressInfo).port}`)
)

const makeAgent = (origin: string) =>
  Agent.make({
    name: "secretary",
    prompt: "You book meetings: look for a time that suits all, make the event, and tell the team.",
    tools: [
      ...GoogleCalendar.tools({
        connection: Connection.stored({ service: "Google Calendar", namespace: "user/ada" }),
        baseUrl: origin
      }),
      ...Slack.tools({
        connection: Connection.stored({ service: "Slack", namespace: "user/ada" }),
        baseUrl: `${origin}/api`
      })
    ],
    middleware: [HumanInTheLoop.make({})]
  })

const model = TestChatModel.script([
  TestChatModel.calls([
    {
      name: "google_calendar_find_busy",
      arguments: { from: "2026-03-02T09:00:00Z", to: "2026-03-02T12:00:00Z", calendars: ["grace@example.com"] }
    }
  ]),
  TestChatModel.calls([
    {
      name: "google_calendar_create_event",
      arguments: {
        summary: "Review",
        start: "2026-03-02T10:00:00Z",
        end: "2026-03-02T11:00:00Z",
        attendees: ["grace@example.com"]
      }
    },
    { name: "slack_post_message", arguments: { channel: "C1", text: "Review with Grace: Monday, 10:00 UTC." } }
  ]),
  "The review is on Monday at 10:00 UTC. Grace is invited, and the team knows."
])

const program = Effect.gen(function* () {
  const agent = makeAgent(yield* server)
  const credentials = yield* CredentialStore.CredentialStore
  for (const name of ["google-calendar", "slack"]) {
    yield* credentials.set("user/ada", name, CredentialStore.ApiKey.make({ key: Redacted.make("of-ada") }))
  }

  const asked = yield* Agent.run(agent, "Book an hour with Grace on Monday, and tell the team.")
  for (const { arguments: args, toolName } of asked.pending) yield* Console.log(`${toolName} ${JSON.stringify(args)}`)
  assert.deepEqual([asked.stopReason, asked.pending.length, changes.length], ["suspended", 2, 0])

  const decisions = asked.pending.map((request) => Approval.approve(request))
  const checkpoint = yield* Checkpoint.decode(Checkpoint.encode(asked))
  const booked = yield* Agent.resume(agent, { checkpoint, decisions })
  yield* Console.log(booked.text)
  assert.equal(changes.length, 2)
  assert.equal(JSON.stringify(booked.messages).includes("of-ada"), false)
})

const credentials = CredentialStore.layer.pipe(Layer.provide([Storage.layerMemory, CredentialKey.layerRandom]))
NodeRuntime.runMain(program.pipe(Effect.scoped, Effect.provide([model, credentials, FetchHttpClient.layer])))
