/** All connectors, over the wire: postponed requests are retried, refusals are reported in the service's words. */
import { describe, expect, it } from "@effect/vitest"
import { Effect, Layer, Redacted } from "effect"
import { Approval, type Json, Tool } from "effect-deepagents"
import {
  Confluence,
  Connection,
  GitHub,
  Gmail,
  GoogleCalendar,
  GoogleDrive,
  HubSpot,
  Jira,
  Linear,
  Notion,
  Slack
} from "effect-deepagents/connect"
import { FetchHttpClient } from "effect/http"
import { json, serve } from "../web/pages.ts"
import { caller } from "./caller.ts"

const nobody = Layer.succeed(Approval.Approvals, { decide: () => Effect.die("nobody is asked") })

type AnyTool = Tool.Tool<never>

interface Case {
  readonly tools: (options: { readonly connection: Connection.Connection; readonly baseUrl: string }) => unknown
  readonly call: string
  readonly args: Json.JsonObject
  readonly good: unknown
  /** The service's answers to too many requests, and to a request for a missing thing. */
  readonly tooOften: () => Response
  readonly refused: () => Response
  readonly words: string
}

const soon = { "retry-after": "0" }
const google = (code: number, reason: string, message: string) =>
  json({ error: { code, message, errors: [{ domain: "usageLimits", reason, message }] } }, { status: code })
const graphql = (message: string, code: string) => ({ errors: [{ message, extensions: { code } }] })
const list = { results: [], _links: {} }

const cases: { readonly [service: string]: Case } = {
  Gmail: {
    tools: Gmail.tools,
    call: "gmail_list_labels",
    args: {},
    good: { labels: [] },
    tooOften: () => new Response(JSON.stringify({ error: { code: 429 } }), { status: 429, headers: soon }),
    refused: () => google(404, "notFound", "Requested entity was not found."),
    words: "Requested entity was not found."
  },
  "Google Calendar": {
    tools: GoogleCalendar.tools,
    call: "google_calendar_list_events",
    args: {},
    good: { items: [] },
    tooOften: () => json({ error: { code: 429 } }, { status: 429, headers: soon }),
    refused: () => google(400, "badRequest", "Bad Request: timeMin"),
    words: "timeMin"
  },
  "Google Drive": {
    tools: GoogleDrive.tools,
    call: "google_drive_search_files",
    args: { words: "" },
    good: { files: [] },
    tooOften: () => json({ error: { code: 429 } }, { status: 429, headers: soon }),
    refused: () => google(403, "insufficientFilePermissions", "The user does not have sufficient permissions"),
    words: "sufficient permissions"
  },
  Slack: {
    tools: Slack.tools,
    call: "slack_list_channels",
    args: {},
    good: { ok: true, channels: [] },
    tooOften: () => json({ ok: false, error: "ratelimited" }, { status: 429, headers: soon }),
    refused: () => json({ ok: false, error: "missing_scope", needed: "channels:read" }),
    words: "channels:read"
  },
  GitHub: {
    tools: GitHub.tools,
    call: "github_list_issues",
    args: { repository: "o/r" },
    good: [],
    // The secondary limit.
    tooOften: () => json({ message: "You have exceeded a secondary rate limit." }, { status: 403, headers: soon }),
    refused: () => json({ message: "Not Found", documentation_url: "https://docs.github.com/rest" }, { status: 404 }),
    words: "docs.github.com"
  },
  Linear: {
    tools: Linear.tools,
    call: "linear_list_teams",
    args: {},
    good: { data: { page: { nodes: [], pageInfo: { hasNextPage: false, endCursor: null } } } },
    tooOften: () => json(graphql("Rate limit exceeded", "RATELIMITED"), { status: 400, headers: soon }),
    refused: () => json(graphql("Argument Validation Error", "INVALID_INPUT"), { status: 400 }),
    words: "Argument Validation Error"
  },
  Notion: {
    tools: Notion.tools,
    call: "notion_search",
    args: { query: "x" },
    good: { object: "list", results: [], has_more: false, next_cursor: null },
    tooOften: () => json({ object: "error", status: 429, code: "rate_limited" }, { status: 429, headers: soon }),
    refused: () =>
      json({ object: "error", status: 400, code: "validation_error", message: "body failed" }, { status: 400 }),
    words: "validation_error"
  },
  Jira: {
    tools: Jira.tools,
    call: "jira_search",
    args: { jql: "x" },
    good: { issues: [] },
    tooOften: () => json({ errorMessages: ["Rate limit exceeded."] }, { status: 429, headers: soon }),
    refused: () => json({ errorMessages: ["Error in the JQL Query"], errors: {} }, { status: 400 }),
    words: "Error in the JQL Query"
  },
  Confluence: {
    tools: Confluence.tools,
    call: "confluence_list_spaces",
    args: {},
    good: list,
    tooOften: () => json({ message: "Rate limit exceeded" }, { status: 429, headers: soon }),
    refused: () =>
      json({ errors: [{ status: 404, code: "NOT_FOUND", title: "Not Found", detail: null }] }, { status: 404 }),
    words: "NOT_FOUND"
  },
  HubSpot: {
    tools: HubSpot.tools,
    call: "hubspot_list",
    args: { kind: "deals" },
    good: { results: [] },
    tooOften: () =>
      json({ status: "error", errorType: "RATE_LIMIT", policyName: "SECONDLY" }, { status: 429, headers: soon }),
    refused: () =>
      json(
        { status: "error", category: "VALIDATION_ERROR", message: "Property values were not valid" },
        { status: 400 }
      ),
    words: "Property values were not valid"
  }
}

describe.each(Object.entries(cases))("%s, over the wire", (service, { args, call, good, refused, tools, ...one }) => {
  const paths: Array<string> = []
  const run = Effect.fnUntraced(function* (answers: ReadonlyArray<() => Response>, end = "") {
    let asked = 0
    const origin = yield* serve((request) => {
      paths.push(new URL(request.url).pathname)
      return answers[asked++]?.() ?? json(good)
    })
    const baseUrl = `${origin}${end}`
    const connection = Connection.fixed(service, Redacted.make("ada@x.test:t0ken"))
    const tool = (tools({ connection, baseUrl }) as ReadonlyArray<AnyTool>).find(({ name }) => name === call)
    if (tool === undefined) return expect.unreachable()
    const result = yield* Effect.result(Tool.run(tool, args))
    return { asked, failure: result._tag === "Failure" ? result.failure.message : undefined }
  })
  const provided = Effect.provide([FetchHttpClient.layer, nobody])

  it.effect("is asked again when it puts off", () =>
    Effect.gen(function* () {
      expect(yield* run([one.tooOften, one.tooOften])).toEqual({ asked: 3, failure: undefined })
      const later = () => new Response("{}", { status: 429, headers: { "retry-after": "7200" } })
      expect(yield* run([later])).toEqual({ asked: 1, failure: expect.stringContaining("7200 seconds") })
    }).pipe(provided)
  )

  it.effect("takes an address with a slash at its end", () =>
    Effect.gen(function* () {
      paths.length = 0
      yield* run([])
      yield* run([], "/")
      expect(paths).toEqual([paths[0], paths[0]])
      expect(paths[0]).not.toContain("//")
    }).pipe(provided)
  )

  it.effect("says why it refuses, once, and nothing of the credential", () =>
    Effect.gen(function* () {
      const { asked, failure } = yield* run([refused])
      expect([asked, failure]).toEqual([1, expect.stringContaining(one.words)])
      expect(failure).not.toContain("t0ken")
    }).pipe(provided)
  )

  it.effect("says how to connect when it does not take the credential", () =>
    Effect.gen(function* () {
      const { failure } = yield* run([() => json({ message: "Bad credentials" }, { status: 401 })])
      expect(failure).toContain("is to be replaced where the application is configured")
    }).pipe(provided)
  )

  it.effect("an answer that is no JSON, or of another form, is told as such", () =>
    Effect.gen(function* () {
      for (const body of ["<html>", '{"unexpected":true}', '"text"']) {
        const { failure } = yield* run([() => new Response(body)])
        const isFine = ["Gmail", "Google Calendar", "Google Drive"].includes(service) && body.startsWith("{")
        if (!isFine) expect([body, failure]).toEqual([body, expect.stringMatching(/no JSON|another form/)])
      }
    }).pipe(provided)
  )
})

it.effect("Google says with status 403 that it is asked too often", () =>
  Effect.gen(function* () {
    let asked = 0
    const baseUrl = yield* serve(() =>
      asked++ === 0
        ? new Response(google(403, "userRateLimitExceeded", "Slow down").body, { status: 403, headers: soon })
        : json({ labels: [] })
    )
    const gmail = caller(Gmail.tools({ connection: Connection.fixed("Gmail", Redacted.make("t")), baseUrl }))
    yield* gmail("gmail_list_labels")
    expect(asked).toBe(2)
  }).pipe(Effect.provide(FetchHttpClient.layer))
)

it.effect("a change is made when its response is no JSON", () =>
  Effect.gen(function* () {
    const bodies = ["<html>", " ", '"text"', ""]
    for (const body of bodies) {
      const baseUrl = yield* serve(() => new Response(body))
      const options = { connection: Connection.fixed("Jira", Redacted.make("ada@x.test:t0ken")), baseUrl }
      const jira = caller(Jira.tools(options))
      const calendar = caller(GoogleCalendar.tools(options))
      expect([
        yield* jira("jira_transition_issue", { key: "ENG-1", transitionId: "31" }),
        yield* jira("jira_assign_issue", { key: "ENG-1" }),
        yield* calendar("google_calendar_delete_event", { id: "e1" })
      ]).toEqual([{ moved: "ENG-1" }, { assigned: "ENG-1" }, { deleted: "e1" }])
    }
  }).pipe(Effect.provide(FetchHttpClient.layer))
)
