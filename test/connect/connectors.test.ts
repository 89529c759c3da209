import { describe, expect, it } from "@effect/vitest"
import { Effect, Fiber, Layer, Redacted } from "effect"
import { Approval, type Json, Tool, ToolOutput } from "effect-deepagents"
import { MemoryBackend } from "effect-deepagents/backends"
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
import { McpCatalogue } from "effect-deepagents/mcp"
import { CredentialKey, CredentialStore, Storage } from "effect-deepagents/stores"
import { TestClock } from "effect/testing"
import PostalMime from "postal-mime"
import { json, layer, loopback } from "../web/pages.ts"
import { caller } from "./caller.ts"

const nobody = Layer.succeed(Approval.Approvals, { decide: () => Effect.die("nobody is asked") })

interface Asked {
  readonly method: string
  readonly path: string
  readonly query: Readonly<Record<string, string>>
  readonly headers: Headers
  readonly body: unknown
}

/** A service that answers by method and path, and keeps its requests. */
const service = (routes: { readonly [route: string]: (asked: Asked) => unknown }) => {
  const seen: Array<Asked> = []
  const handler = async (request: Request) => {
    const url = new URL(request.url)
    const text = await request.text()
    const asked: Asked = {
      method: request.method,
      path: decodeURIComponent(url.pathname),
      query: Object.fromEntries(url.searchParams),
      headers: request.headers,
      body: text === "" ? undefined : JSON.parse(text)
    }
    seen.push(asked)
    const answer = routes[`${asked.method} ${asked.path}`]?.(asked)
    if (answer === undefined) return json({ message: `no such thing: ${asked.path}` }, { status: 404 })
    return answer instanceof Response ? answer : json(answer)
  }
  return { seen, http: loopback(handler) }
}

const options = (name: string) => ({ connection: Connection.fixed(name, Redacted.make("t0ken")) })

type AnyTool = Tool.Tool<never>

/** Runs a tool by its name, with nobody to decide. */
const call = (tools: ReadonlyArray<Tool.Tool<never>>, name: string, args: Json.JsonObject) => {
  const tool = tools.find((one) => one.name === name)
  if (tool === undefined) return Effect.die(`no tool ${name}`)
  return Effect.map(Tool.run(tool, args), (output) => ({ details: output.details, text: ToolOutput.text(output) }))
}

const all = (tools: ReadonlyArray<unknown>): ReadonlyArray<AnyTool> => tools as ReadonlyArray<AnyTool>

const base64url = (text: string) => Buffer.from(text).toString("base64url")

describe("connectors", () => {
  it.effect("Gmail: pages of a search, parts of a message, an attachment as a file, a message that is sent", () => {
    const message = {
      id: "m1",
      threadId: "t1",
      labelIds: ["INBOX"],
      snippet: "Hi &amp; bye",
      payload: {
        mimeType: "multipart/mixed",
        headers: [
          { name: "From", value: "Ada <ada@x.test>" },
          { name: "Subject", value: "Report" }
        ],
        body: { size: 0 },
        parts: [
          {
            mimeType: "multipart/alternative",
            body: { size: 0 },
            parts: [
              { mimeType: "text/plain", filename: "", body: { size: 5, data: `${base64url("Grüße")}` } },
              { mimeType: "text/html", filename: "", body: { size: 9, data: base64url("<b>no</b>") } }
            ]
          },
          { mimeType: "application/pdf", filename: "a.pdf", body: { attachmentId: "a1", size: 3 } }
        ]
      }
    }
    const root = "/gmail/v1/users/me"
    const { http, seen } = service({
      [`GET ${root}/messages`]: ({ query }) =>
        query["pageToken"] === "2"
          ? { messages: [{ id: "m2", threadId: "t1" }] }
          : { messages: [{ id: "m1", threadId: "t1" }], nextPageToken: "2", resultSizeEstimate: 2 },
      [`GET ${root}/messages/m1`]: () => message,
      [`GET ${root}/messages/m2`]: () => ({ ...message, id: "m2" }),
      [`GET ${root}/threads/t1`]: () => ({ id: "t1", messages: [message] }),
      [`GET ${root}/messages/m1/attachments/a1`]: () => ({ size: 3, data: base64url("pdf") }),
      [`GET ${root}/labels`]: () => ({ labels: [{ id: "INBOX", name: "INBOX", type: "system" }] }),
      [`POST ${root}/messages/send`]: () => ({ id: "m9", threadId: "t9", labelIds: ["SENT"] }),
      [`POST ${root}/drafts`]: () => ({ id: "d1", message: { id: "m8", threadId: "t8" } })
    })
    const tools = all(Gmail.tools(options("Gmail")))
    return Effect.gen(function* () {
      const found = yield* call(tools, "gmail_search", { query: "unread" })
      expect(found.details).toMatchObject([{ id: "m1" }, { id: "m2" }])
      expect(seen[0]?.query).toEqual({ q: "is:unread", maxResults: "100" })
      expect(seen[0]?.headers.get("authorization")).toBe("Bearer t0ken")
      const one = yield* call(tools, "gmail_search", { query: "x", limit: 1 })
      expect(one.details).toHaveLength(1)
      const read = yield* call(tools, "gmail_read_message", { id: "m1" })
      expect(read.details).toMatchObject({
        from: "Ada <ada@x.test>",
        subject: "Report",
        snippet: "Hi & bye",
        text: "Grüße",
        attachments: [{ id: "a1", name: "a.pdf", mimeType: "application/pdf", size: 3 }]
      })
      expect((yield* call(tools, "gmail_read_thread", { id: "t1" })).details).toHaveLength(1)
      expect((yield* call(tools, "gmail_list_labels", {})).details).toHaveLength(1)
      const saved = yield* call(tools, "gmail_get_attachment", { messageId: "m1", attachmentId: "a1", path: "/a.pdf" })
      expect(saved.details).toEqual({ path: "/a.pdf", bytes: 3 })
      const draft = { to: ["bob@x.test\r\nBcc: eve@x.test"], subject: "Über\r\nBcc: eve@x.test", text: "Hallo Welt" }
      yield* call(tools, "gmail_send_message", draft)
      yield* call(tools, "gmail_create_draft", draft)
      const sent = seen.findLast(({ path }) => path.endsWith("/send"))?.body as { raw: string }
      const raw = Buffer.from(sent.raw, "base64url").toString()
      expect(raw.split("\r\n").filter((line) => /^bcc/i.test(line))).toEqual([])
      expect(raw).toContain(`Subject: =?UTF-8?B?${Buffer.from("Über Bcc: eve@x.test").toString("base64")}?=`)
      expect(Buffer.from(raw.slice(raw.indexOf("\r\n\r\n")), "base64").toString()).toBe("Hallo Welt")
    }).pipe(Effect.provide([http, nobody, MemoryBackend.layer()]))
  })

  it.effect("Gmail: names and subjects of any script and length come as they were, in lines that mail can have", () => {
    const seen: Array<string> = []
    const http = layer(async (request) => {
      const { raw } = (await request.json()) as { raw: string }
      seen.push(Buffer.from(raw, "base64url").toString("latin1"))
      return json({ id: "m1" })
    })
    const mail = {
      subject: "Grüße 📅 aus 東京 ".repeat(40).trim(),
      to: [
        "Zoë Straße <zoe@x.test>",
        '"Müller, Äda" <ada@x.test>',
        ...Array.from({ length: 60 }, (_, index) => `p${index}@x.test`)
      ]
    }
    return Effect.gen(function* () {
      const gmail = caller(Gmail.tools(options("Gmail")))
      for (const subject of [mail.subject, "x ".repeat(2_000).trim()]) {
        yield* gmail("gmail_send_message", { ...mail, subject, text: "Hallo" })
        const raw = seen.at(-1) ?? ""
        const read = yield* Effect.promise(() => PostalMime.parse(raw))
        expect(read.subject).toBe(subject)
        expect(read.to?.slice(0, 3).map(({ address, name }) => [name, address])).toEqual([
          ["Zoë Straße", "zoe@x.test"],
          ["Müller, Äda", "ada@x.test"],
          ["", "p0@x.test"]
        ])
        expect(read.to).toHaveLength(62)
        expect([...raw].every((one) => one.charCodeAt(0) < 128)).toBe(true)
        for (const line of raw.split("\r\n")) {
          expect(line.length).toBeLessThanOrEqual(998)
          for (const [word] of line.matchAll(/=\?UTF-8.*?\?=/g)) expect(word.length).toBeLessThanOrEqual(75)
        }
      }
    }).pipe(Effect.provide(http))
  })

  it.effect("Google Calendar and Drive", () => {
    const event = {
      id: "e1",
      status: "confirmed",
      summary: "Review",
      start: { dateTime: "2026-01-05T10:00:00Z" },
      end: { dateTime: "2026-01-05T11:00:00Z" }
    }
    const file = { kind: "drive#file", id: "f1", name: "Plan", mimeType: "application/vnd.google-apps.document" }
    const { http, seen } = service({
      "GET /calendar/v3/calendars/primary/events": ({ query }) =>
        query["pageToken"] === undefined ? { items: [event], nextPageToken: "n" } : { items: [{ ...event, id: "e2" }] },
      "POST /calendar/v3/freeBusy": () => ({
        calendars: { "bob@x.test": { busy: [{ start: "2026-01-05T10:00:00Z", end: "2026-01-05T11:00:00Z" }] } }
      }),
      "POST /calendar/v3/calendars/primary/events": ({ body }) => ({ ...event, ...(body as object), attendees: [] }),
      "DELETE /calendar/v3/calendars/primary/events/e1": () => new Response(null, { status: 204 }),
      "GET /drive/v3/files": () => ({ files: [file] }),
      "GET /drive/v3/files/f1": () => file,
      "GET /drive/v3/files/f1/export": () => new Response("# Plan", { headers: { "content-type": "text/markdown" } })
    })
    const tools = all([
      ...GoogleCalendar.tools(options("Google Calendar")),
      ...GoogleDrive.tools(options("Google Drive"))
    ])
    return Effect.gen(function* () {
      const events = yield* call(tools, "google_calendar_list_events", { from: "2026-01-05T00:00:00Z" })
      expect(events.details).toMatchObject([{ id: "e1" }, { id: "e2" }])
      expect(seen[0]?.query).toMatchObject({ timeMin: "2026-01-05T00:00:00Z", singleEvents: "true" })
      const busy = yield* call(tools, "google_calendar_find_busy", { from: "a", to: "b", calendars: ["bob@x.test"] })
      expect(busy.details).toMatchObject([{ calendar: "bob@x.test", busy: [{ start: "2026-01-05T10:00:00Z" }] }])
      yield* call(tools, "google_calendar_create_event", {
        summary: "Lunch",
        start: "2026-01-06",
        end: "2026-01-07T12:00:00Z",
        attendees: ["bob@x.test"]
      })
      expect(seen.at(-1)).toMatchObject({
        query: { sendUpdates: "all" },
        body: {
          summary: "Lunch",
          start: { date: "2026-01-06" },
          end: { dateTime: "2026-01-07T12:00:00Z" },
          attendees: [{ email: "bob@x.test" }]
        }
      })
      expect((yield* call(tools, "google_calendar_delete_event", { id: "e1" })).details).toEqual({ deleted: "e1" })
      yield* call(tools, "google_drive_search_files", { words: "O'Hara's \\ plan" })
      expect(seen.at(-1)?.query["q"]).toContain(String.raw`name contains 'O\'Hara\'s \\ plan'`)
      const read = yield* call(tools, "google_drive_read_file", { id: "f1" })
      expect(read.details).toMatchObject({ file: { name: "Plan" }, text: "# Plan" })
      expect(seen.at(-1)?.query).toEqual({ mimeType: "text/markdown" })
      const stray = yield* Effect.flip(call(tools, "google_drive_read_file", { id: "../f1" }))
      expect([stray.message, seen.at(-1)?.path]).toEqual([expect.stringContaining("404"), "/drive/v3/files/../f1"])
    }).pipe(Effect.provide([http, nobody]))
  })

  it.effect("Slack: a refusal with status 200 is a failure, cursors are followed to the end", () => {
    const { http, seen } = service({
      "GET /api/conversations.list": ({ query }) =>
        query["cursor"] === undefined
          ? { ok: true, channels: [{ id: "C1", name: "general" }], response_metadata: { next_cursor: "dGVhbQ==" } }
          : { ok: true, channels: [{ id: "C2" }], response_metadata: { next_cursor: "" } },
      "GET /api/conversations.history": () => ({
        ok: true,
        messages: [{ type: "message", ts: "1.1", text: "hi" }],
        has_more: false
      }),
      "GET /api/conversations.replies": () => ({ ok: false, error: "missing_scope", needed: "channels:history" }),
      "GET /api/search.messages": ({ query }) => ({
        ok: true,
        messages: {
          matches: [{ ts: `${query["page"] ?? 1}`, text: "found", channel: { id: "C1", name: "general" } }],
          paging: { count: 1, total: 2, page: Number(query["page"] ?? 1), pages: 2 }
        }
      }),
      "GET /api/users.lookupByEmail": () => ({ ok: true, user: { id: "U1", profile: { email: "ada@x.test" } } }),
      "GET /api/users.info": () => ({ ok: false, error: "invalid_auth" }),
      "POST /api/chat.postMessage": () => ({ ok: true, channel: "C1", ts: "1.2", message: {} })
    })
    const tools = all(Slack.tools({ ...options("Slack"), baseUrl: "https://slack.test/api" }))
    return Effect.gen(function* () {
      expect((yield* call(tools, "slack_list_channels", {})).details).toHaveLength(2)
      expect((yield* call(tools, "slack_channel_history", { channel: "C1" })).details).toMatchObject([{ text: "hi" }])
      expect((yield* call(tools, "slack_search_messages", { query: "x" })).details).toMatchObject([
        { ts: "1" },
        { ts: "2" }
      ])
      expect((yield* call(tools, "slack_user_lookup", { user: "ada@x.test" })).details).toMatchObject({ id: "U1" })
      const scope = yield* Effect.flip(call(tools, "slack_get_thread_replies", { channel: "C1", ts: "1" }))
      expect(scope.message).toContain("channels:history")
      const auth = yield* Effect.flip(call(tools, "slack_user_lookup", { user: "U1" }))
      expect(auth.message).toContain("is to be replaced")
      yield* call(tools, "slack_post_message", { channel: "C1", text: "hello", thread_ts: "1.1" })
      expect(seen.at(-1)?.body).toEqual({ channel: "C1", text: "hello", thread_ts: "1.1" })
    }).pipe(Effect.provide([http, nobody]))
  })

  it.effect("GitHub: pages by Link, repositories that can't lead elsewhere", () => {
    const issue = {
      number: 1,
      title: "Bug",
      state: "open",
      html_url: "https://github.com/o/r/issues/1",
      body: null,
      user: { login: "ada" }
    }
    const next = { headers: { link: '<https://api.github.com/x?page=2>; rel="next"' } }
    const { http, seen } = service({
      "GET /repos/o/r/issues": ({ query }) =>
        query["page"] === "1" ? json([issue], next) : json([{ ...issue, number: 2 }]),
      "GET /search/issues": () => ({ total_count: 1, incomplete_results: false, items: [issue] }),
      "GET /search/code": () => ({
        items: [{ path: "a.ts", html_url: "https://x", repository: { full_name: "o/r" } }]
      }),
      "GET /repos/o/r/issues/1": () => issue,
      "GET /repos/o/r/pulls/1": () => ({ ...issue, draft: false, merged: true }),
      "GET /repos/o/r/pulls/1/files": () => [{ filename: "a", status: "added", additions: 1, deletions: 0 }],
      "GET /repos/o/r/issues/1/comments": () => [{ id: 5, html_url: "https://x", body: "yes", user: null }],
      "POST /repos/o/r/issues": ({ body }) => ({ ...issue, ...(body as object) }),
      "PATCH /repos/o/r/issues/1": () => ({ ...issue, state: "closed" }),
      "POST /repos/o/r/issues/1/comments": () => ({ id: 6, html_url: "https://x" })
    })
    const tools = all(GitHub.tools(options("GitHub")))
    const one = { repository: "o/r", number: 1 }
    return Effect.gen(function* () {
      const list = yield* call(tools, "github_list_issues", { repository: "o/r" })
      expect(list.details).toMatchObject([{ number: 1 }, { number: 2 }])
      expect(seen[0]?.headers.get("x-github-api-version")).toBe("2022-11-28")
      for (const name of [
        "github_get_issue",
        "github_get_pull_request",
        "github_list_comments",
        "github_list_pull_request_files"
      ]) {
        expect((yield* call(tools, name, one)).details).toBeDefined()
      }
      for (const name of ["github_search_issues", "github_search_code"]) {
        expect((yield* call(tools, name, { query: "bug" })).details).toHaveLength(1)
      }
      yield* call(tools, "github_create_issue", { repository: "o/r", title: "New" })
      expect(seen.at(-1)?.body).toEqual({ title: "New" })
      yield* call(tools, "github_update_issue", { ...one, state: "closed" })
      expect(seen.at(-1)).toMatchObject({ method: "PATCH", body: { state: "closed" } })
      yield* call(tools, "github_comment", { ...one, body: "done" })
      const count = seen.length
      expect((yield* Effect.flip(call(tools, "github_list_issues", { repository: "o/r/../../user" }))).reason).toBe(
        "InvalidArguments"
      )
      expect(seen.length).toBe(count)
    }).pipe(Effect.provide([http, nobody]))
  })

  it.effect("Linear: keys without a scheme, pages of GraphQL, errors with status 200", () => {
    const issue = {
      id: "i1",
      identifier: "ENG-1",
      title: "Bug",
      url: "https://linear.app/i",
      state: { id: "s", name: "Todo" },
      assignee: null
    }
    const { http, seen } = service({
      "POST /graphql": ({ body }) => {
        const { query, variables } = body as { query: string; variables: Record<string, unknown> }
        if (/issueCreate|issueUpdate/.test(query)) return { data: { done: { success: true, issue } } }
        if (query.includes("issue(id:"))
          return variables["id"] === "ENG-1"
            ? { data: { issue } }
            : { data: null, errors: [{ message: "Entity not found" }] }
        const node = query.includes("searchIssues")
          ? issue
          : { id: "t", name: "Engineering", key: "ENG", url: "https://x" }
        return variables["after"] === undefined
          ? { data: { page: { nodes: [node], pageInfo: { hasNextPage: true, endCursor: "c1" } } } }
          : { data: { page: { nodes: [node], pageInfo: { hasNextPage: false, endCursor: null } } } }
      }
    })
    const tools = all(Linear.tools(options("Linear")))
    return Effect.gen(function* () {
      expect((yield* call(tools, "linear_search_issues", { query: "bug" })).details).toHaveLength(2)
      expect(seen[0]?.headers.get("authorization")).toBe("t0ken")
      expect((yield* call(tools, "linear_list_teams", { limit: 1 })).details).toHaveLength(1)
      expect((yield* call(tools, "linear_list_projects", {})).details).toHaveLength(2)
      expect((yield* call(tools, "linear_get_issue", { id: "ENG-1" })).details).toMatchObject({ identifier: "ENG-1" })
      expect((yield* Effect.flip(call(tools, "linear_get_issue", { id: "ENG-2" }))).message).toContain(
        "Entity not found"
      )
      yield* call(tools, "linear_create_issue", { teamId: "t", title: "New", priority: 1 })
      expect(seen.at(-1)?.body).toMatchObject({ variables: { input: { teamId: "t", title: "New", priority: 1 } } })
      yield* call(tools, "linear_update_issue", { id: "i1", stateId: "s" })
      expect(seen.at(-1)?.body).toMatchObject({ variables: { id: "i1", input: { stateId: "s" } } })
    }).pipe(Effect.provide([http, nobody]))
  })

  it.effect("Notion: pages by cursor, blocks as lines, a long text in pieces", () => {
    const rich = (text: string) => [{ type: "text", text: { content: text }, plain_text: text }]
    const page = {
      object: "page",
      id: "p1",
      url: "https://notion.so/p1",
      last_edited_time: "2026-01-01T00:00:00.000Z",
      properties: {
        Status: { type: "select", select: null },
        Name: { id: "title", type: "title", title: rich("Plan") }
      }
    }
    const { http, seen } = service({
      "POST /v1/search": ({ body }) => {
        const isFirst = (body as { start_cursor?: string }).start_cursor === undefined
        return { object: "list", results: [page], has_more: isFirst, next_cursor: isFirst ? "c" : null }
      },
      "GET /v1/pages/p1": () => page,
      "GET /v1/blocks/p1/children": () => ({
        results: [
          { type: "heading_1", heading_1: { rich_text: rich("Title") } },
          { type: "divider", divider: {} },
          { type: "to_do", to_do: { rich_text: rich("Task"), checked: false } },
          { type: "toggle", id: "b1", has_children: true, toggle: { rich_text: rich("More") } },
          { type: "child_page", id: "p2", has_children: true, child_page: { title: "Other" } }
        ],
        has_more: false,
        next_cursor: null
      }),
      "GET /v1/blocks/b1/children": () => ({
        results: [
          { type: "paragraph", paragraph: { rich_text: rich("within") } },
          { type: "table_row", table_row: { cells: [rich("a"), rich("b")] } },
          // A block that says that it is in itself.
          { type: "toggle", id: "b1", has_children: true, toggle: { rich_text: rich("again") } }
        ],
        has_more: false,
        next_cursor: null
      }),
      "POST /v1/pages": () => page,
      "PATCH /v1/blocks/p1/children": ({ body }) =>
        (body as { children: ReadonlyArray<unknown> }).children.length < 50
          ? json({}, { status: 400 })
          : { results: [] }
    })
    const tools = all(Notion.tools(options("Notion")))
    return Effect.gen(function* () {
      const found = yield* call(tools, "notion_search", { query: "plan" })
      expect(found.details).toMatchObject([{ id: "p1", title: "Plan" }, { id: "p1" }])
      const read = yield* call(tools, "notion_read_page", { id: "p1" })
      const inner = (depth: number): string =>
        ["within", "a | b", "again"].map((line) => `\n${"  ".repeat(depth)}${line}`).join("") +
        (depth < 4 ? inner(depth + 1) : "")
      expect(read.details).toMatchObject({ title: "Plan", text: `# Title\n\n- [ ] Task\nMore${inner(1)}\n` })
      yield* call(tools, "notion_create_page", { parentId: "p1", title: "New", text: `a\n\n${"b".repeat(4_500)}` })
      const { children } = seen.at(-1)!.body as {
        children: ReadonlyArray<{ paragraph: { rich_text: ReadonlyArray<{ text: { content: string } }> } }>
      }
      expect(children.map(({ paragraph }) => paragraph.rich_text[0]?.text.content.length)).toEqual([
        1, 2_000, 2_000, 500
      ])
      // A request takes 100 blocks.
      const lines = (count: number) => Array.from({ length: count }, (_, index) => `line ${index}`).join("\n")
      const before = seen.length
      yield* call(tools, "notion_create_page", { parentId: "p1", title: "New", text: lines(250) })
      const written = seen.slice(before).flatMap(({ body }) => (body as { children: typeof children }).children)
      expect(seen.length - before).toBe(3)
      expect(written.map(({ paragraph }) => paragraph.rich_text[0]?.text.content).join("\n")).toBe(lines(250))
      const half = yield* Effect.flip(
        call(tools, "notion_create_page", { parentId: "p1", title: "New", text: lines(210) })
      )
      expect(half.message).toMatch(/write a page: the page p1 is there with its first 200 paragraphs, .* status 400/)
    }).pipe(Effect.provide([http, nobody]))
  })

  it.effect(
    "Jira and Confluence: basic authentication, documents of Atlassian's format, pages by token and by link",
    () => {
      const adf = {
        type: "doc",
        version: 1,
        content: [
          {
            type: "paragraph",
            content: [
              { type: "text", text: "Steps" },
              { type: "hardBreak" },
              { type: "text", text: "one, " },
              { type: "mention", attrs: { id: "1", text: "@Ada" } },
              { type: "inlineCard", attrs: { url: "https://x.test/1" } }
            ]
          }
        ]
      }
      const issue = {
        id: "1",
        key: "ENG-1",
        fields: { summary: "Bug", status: { name: "To Do" }, assignee: null, description: adf }
      }
      const page = {
        id: "9",
        title: "Home",
        spaceId: "3",
        version: { number: 4 },
        body: {
          storage: {
            value:
              '<p>Hello &amp; <b>all</b></p><ac:structured-macro ac:name="code"><ac:plain-text-body><![CDATA[if (a < b && c > d)\n  return "&amp;"]]></ac:plain-text-body></ac:structured-macro><p>End</p>',
            representation: "storage"
          }
        }
      }
      const none = () => new Response(null, { status: 204 })
      const { http, seen } = service({
        "GET /rest/api/3/search/jql": ({ query }) =>
          query["nextPageToken"] === undefined
            ? { issues: [issue], nextPageToken: "n" }
            : { issues: [issue], isLast: true },
        "GET /rest/api/3/issue/ENG-1": () => issue,
        "POST /rest/api/3/issue": () => json({ id: "2", key: "ENG-2", self: "https://x" }, { status: 201 }),
        "GET /rest/api/3/issue/ENG-1/transitions": () => ({
          transitions: [{ id: "31", name: "Done", to: { name: "Done" } }]
        }),
        "POST /rest/api/3/issue/ENG-1/transitions": none,
        "POST /rest/api/3/issue/ENG-1/comment": () => json({ id: "7" }, { status: 201 }),
        "PUT /rest/api/3/issue/ENG-1/assignee": none,
        "GET /wiki/rest/api/search": ({ query }) => ({
          results: [{ content: { id: "9", type: "page", title: "Home" }, excerpt: "@@@hl@@@<i>Hello</i>", url: "/x" }],
          _links: query["cursor"] === undefined ? { next: "/rest/api/search?cql=x&cursor=abc" } : {}
        }),
        "GET /wiki/api/v2/spaces": () => ({ results: [{ id: "3", key: "HR", name: "People" }], _links: {} }),
        "GET /wiki/api/v2/pages/9": () => page,
        "POST /wiki/api/v2/pages": () => page,
        "PUT /wiki/api/v2/pages/9": () => page
      })
      const site = {
        connection: Connection.fixed("Atlassian", Redacted.make("ada@x.test:t0ken")),
        baseUrl: "https://x.atlassian.test/"
      }
      const tools = all([...Jira.tools(site), ...Confluence.tools(site)])
      const key = "ENG-1"
      return Effect.gen(function* () {
        expect((yield* call(tools, "jira_search", { jql: "project = ENG" })).details).toHaveLength(2)
        expect(seen[0]?.headers.get("authorization")).toBe(
          `Basic ${Buffer.from("ada@x.test:t0ken").toString("base64")}`
        )
        expect((yield* call(tools, "jira_get_issue", { key })).details).toMatchObject({
          key,
          status: "To Do",
          description: "Steps\none, @Adahttps://x.test/1"
        })
        expect((yield* call(tools, "jira_list_transitions", { key })).details).toMatchObject([{ id: "31" }])
        yield* call(tools, "jira_create_issue", { project: "ENG", summary: "New", type: "Bug", description: "a\n\nb" })
        expect(seen.at(-1)?.body).toMatchObject({
          fields: { description: { type: "doc", content: [{ type: "paragraph" }, { type: "paragraph" }] } }
        })
        yield* call(tools, "jira_transition_issue", { key, transitionId: "31" })
        yield* call(tools, "jira_add_comment", { key, body: "done" })
        yield* call(tools, "jira_assign_issue", { key })
        expect(seen.at(-1)?.body).toEqual({ accountId: null })
        const found = yield* call(tools, "confluence_search", { cql: "type = page" })
        expect(found.details).toMatchObject([{ id: "9" }, { id: "9" }])
        expect((yield* call(tools, "confluence_list_spaces", {})).details).toHaveLength(1)
        expect((yield* call(tools, "confluence_read_page", { id: "9" })).details).toMatchObject({
          version: 4,
          text: 'Hello & all\nif (a < b && c > d)\n  return "&amp;"\nEnd'
        })
        yield* call(tools, "confluence_create_page", { spaceId: "3", title: "T", text: "a < b\nc" })
        expect(seen.at(-1)?.body).toMatchObject({ body: { value: "<p>a &lt; b</p><p>c</p>" } })
        yield* call(tools, "confluence_update_page", { id: "9", version: 4, title: "T", text: "x" })
        expect(seen.at(-1)?.body).toMatchObject({ version: { number: 5 } })
      }).pipe(Effect.provide([http, nobody]))
    }
  )

  it.effect("HubSpot: searches by pages, notes that hang on an object", () => {
    const contact = { id: "1", properties: { email: "ada@x.test", phone: null }, archived: false }
    const { http, seen } = service({
      "POST /crm/v3/objects/contacts/search": ({ body }) =>
        (body as { after?: string }).after === undefined
          ? { total: 2, results: [contact], paging: { next: { after: "100" } } }
          : { total: 2, results: [contact] },
      "GET /crm/v3/objects/deals": () => ({ results: [{ id: "5", properties: { dealname: "Big" } }] }),
      "GET /crm/v3/objects/contacts/1": () => contact,
      "GET /crm/v3/owners": () => ({ results: [{ id: "7", email: null }] }),
      "POST /crm/v3/objects/contacts": () => json(contact, { status: 201 }),
      "PATCH /crm/v3/objects/contacts/1": () => contact,
      "POST /crm/v3/objects/notes": () => json({ id: "8", properties: {} }, { status: 201 })
    })
    const tools = all(HubSpot.tools(options("HubSpot")))
    const one = { kind: "contacts", id: "1" }
    return Effect.gen(function* () {
      expect((yield* call(tools, "hubspot_search", { kind: "contacts", query: "ada" })).details).toHaveLength(2)
      expect((yield* call(tools, "hubspot_list", { kind: "deals" })).details).toHaveLength(1)
      expect((yield* call(tools, "hubspot_get", one)).details).toMatchObject({ id: "1" })
      expect((yield* call(tools, "hubspot_list_owners", {})).details).toHaveLength(1)
      yield* call(tools, "hubspot_create", { kind: "contacts", properties: { email: "ada@x.test" } })
      yield* call(tools, "hubspot_update", { ...one, properties: { phone: "1" } })
      yield* call(tools, "hubspot_add_note", { ...one, body: "called" })
      expect(seen.at(-1)?.body).toMatchObject({
        associations: [{ to: { id: "1" }, types: [{ associationTypeId: 202 }] }]
      })
    }).pipe(Effect.provide([http, nobody]))
  })

  it.effect("a service that puts off is asked again when it says, reads are repeated, changes are not", () =>
    Effect.gen(function* () {
      let answers: Array<Response> = []
      let asked = 0
      const http = layer(() => {
        asked++
        return answers.shift() ?? json({ ok: true, channels: [], channel: "C", ts: "1" })
      })
      const slack = caller(Slack.tools(options("Slack")))
      const later = (retry: string) =>
        json({ ok: false, error: "ratelimited" }, { status: 429, headers: { "retry-after": retry } })
      const run = <A, E>(work: Effect.Effect<A, E, never>) => Effect.forkChild(Effect.result(work))
      answers = [later("30"), later("1")]
      const waiting = yield* run(Effect.provide(slack("slack_list_channels"), http))
      yield* TestClock.adjust("29 seconds")
      expect(asked).toBe(1)
      yield* TestClock.adjust("1 second")
      yield* TestClock.adjust("1 second")
      expect([(yield* Fiber.join(waiting))._tag, asked]).toEqual(["Success", 3])
      answers = [later("3600")]
      const long = yield* Effect.flip(Effect.provide(slack("slack_post_message", { channel: "C", text: "x" }), http))
      expect([long.reason, long.isRetryable, long.message]).toEqual([
        "RateLimited",
        true,
        expect.stringContaining("3600 seconds")
      ])
      asked = 0
      answers = [json({}, { status: 503 })]
      const failed = yield* Effect.flip(Effect.provide(slack("slack_post_message", { channel: "C", text: "x" }), http))
      expect([failed.status, asked]).toEqual([503, 1])
      answers = [json({}, { status: 503 })]
      const read = yield* run(Effect.provide(slack("slack_list_channels"), http))
      yield* TestClock.adjust("1 second")
      expect((yield* Fiber.join(read))._tag).toBe("Success")
    })
  )

  it.effect.each(["-5", "", "1e9", "0x10", "5 minutes", "1, 2", "NaN", "Wed, 21 Oct 1969 07:28:00 GMT", "later"])(
    "a time to wait that says nothing (%s) is none: the next request waits all the same, each longer",
    (retry) =>
      Effect.gen(function* () {
        let asked = 0
        const http = layer(() => {
          asked++
          return json({}, { status: 429, headers: { "retry-after": retry } })
        })
        const asking = yield* Effect.forkChild(
          Effect.result(
            Effect.provide(
              caller(GitHub.tools(options("GitHub")))<{ number: number }>("github_get_issue", {
                repository: "o/r",
                number: 1
              }),
              http
            )
          )
        )
        const times: Array<number> = []
        for (let second = 0; second < 8; second++) {
          yield* TestClock.adjust("1 second")
          times.push(asked)
        }
        expect(times).toEqual([2, 2, 3, 3, 3, 3, 4, 4])
        expect((yield* Fiber.join(asking))._tag).toBe("Failure")
      })
  )

  it.effect("a time to wait is a date, too", () =>
    Effect.gen(function* () {
      let asked = 0
      const http = layer(() => {
        asked++
        return asked > 1
          ? json({ number: 1, title: "t", state: "open", html_url: "https://x" })
          : json({}, { status: 429, headers: { "retry-after": "Thu, 01 Jan 1970 00:00:30 GMT" } })
      })
      const asking = yield* Effect.forkChild(
        Effect.provide(
          caller(GitHub.tools(options("GitHub")))<{ number: number }>("github_get_issue", {
            repository: "o/r",
            number: 1
          }),
          http
        )
      )
      yield* TestClock.adjust("29 seconds")
      expect(asked).toBe(1)
      yield* TestClock.adjust("1 second")
      expect((yield* Fiber.join(asking)).number).toBe(1)
    })
  )

  it.effect("an answer that is nested without an end is a failure of the call, and one of some levels is read", () =>
    Effect.gen(function* () {
      const nest = (levels: number) =>
        caller(Gmail.tools(options("Gmail")))<{ id: string }>("gmail_read_message", { id: "m" }).pipe(
          Effect.provide(
            layer(
              () =>
                new Response(`{"id":"m","threadId":"t","payload":${'{"parts":['.repeat(levels)}${"]}".repeat(levels)}}`)
            )
          )
        )
      expect((yield* nest(100)).id).toBe("m")
      for (const levels of [300, 500_000]) {
        expect((yield* Effect.flip(nest(levels))).message).toContain("more than 512 levels")
      }
    })
  )

  it.effect("refuses an id with half a character as unknown", () =>
    Effect.gen(function* () {
      const paths: Array<string> = []
      const http = layer((request) => {
        paths.push(decodeURIComponent(new URL(request.url).pathname))
        return json({}, { status: 404 })
      })
      const jira = all(Jira.tools({ ...options("Jira"), baseUrl: "https://x.atlassian.net" }))
      const failure = yield* Effect.flip(Effect.provide(call(jira, "jira_get_issue", { key: "\ud83d" }), http))
      expect(String(failure)).toContain("there is no such thing")
      expect(paths).toEqual(["/rest/api/3/issue/\ufffd"])
    }).pipe(Effect.provide(nobody))
  )

  it.effect("reports an unusable address without possible secrets", () =>
    Effect.gen(function* () {
      const problemAt = (baseUrl: string) =>
        Effect.map(
          Effect.flip(caller(Jira.tools({ ...options("Jira"), baseUrl }))("jira_get_issue", { key: "ENG-1" })),
          ({ message, reason }) => {
            expect(message).not.toContain("hunter2")
            return [reason, message]
          }
        )
      const none = layer(() => expect.unreachable())
      for (const [baseUrl, words] of [
        ["https://ada:hunter2@x.atlassian.net", "a password stands in the address"],
        ["htps://ada:hunter2@x.atlassian.net", "no http or https URL"],
        ["ada:hunter2@x.atlassian.net", "no http or https URL"],
        ["x.atlassian.net?hunter2", "no http or https URL"]
      ] as const) {
        const problem = yield* Effect.provide(problemAt(baseUrl), none)
        expect(problem).toEqual(["InvalidRequest", expect.stringContaining(words)])
      }
    })
  )

  it.effect("a list without an end is given up, after 20 empty pages in a row or after 1,000 pages", () =>
    Effect.gen(function* () {
      let asked = 0
      const channelsOf = (channelsAt: (page: number) => ReadonlyArray<object>) => {
        asked = 0
        return layer(() =>
          json({ ok: true, channels: channelsAt(++asked), response_metadata: { next_cursor: `${asked}` } })
        )
      }
      const channel = { id: "C1", name: "general" }
      const list = caller(Slack.tools(options("Slack")))("slack_list_channels", { limit: 100 })
      const tools = all(Slack.tools(options("Slack")))
      const empty = yield* Effect.flip(
        Effect.provide(
          list,
          channelsOf(() => [])
        )
      )
      expect([empty.reason, asked]).toEqual(["UnexpectedAnswer", 20])
      expect(empty.message).toContain("Slack, list channels: after 20 pages, the last 20 of them empty")
      // A page with content restarts the count, and earlier content is shown.
      const some = channelsOf((page) => (page === 15 ? [channel] : []))
      const { details, text } = yield* Effect.provide(call(tools, "slack_list_channels", {}), some)
      expect([details, asked]).toEqual([[channel], 35])
      expect(text).toContain("The list breaks off after these, and is not whole: Slack, list channels")
      const many = channelsOf((page) => (page % 15 === 0 ? [channel] : []))
      const all100 = yield* Effect.provide(call(tools, "slack_list_channels", { limit: 100 }), many)
      expect(asked).toBe(1_000)
      expect(all100.text).toContain("after 1000 pages")
      // Nothing at all is no empty list.
      const none = yield* Effect.flip(
        Effect.provide(
          call(tools, "slack_list_channels", {}),
          channelsOf(() => [])
        )
      )
      expect(String(none)).toContain("ask for something narrower")
    }).pipe(Effect.provide(nobody))
  )

  it.effect(
    "credentials come from the store by tenant and account, are renewed once when refused, and are never told",
    () =>
      Effect.gen(function* () {
        const store = yield* CredentialStore.CredentialStore
        let refreshes = 0
        const connection = Connection.stored({
          service: "Slack",
          namespace: Effect.succeed("tenant/a"),
          name: "slack/ada",
          refresh: () =>
            Effect.sync(() => {
              refreshes++
              return CredentialStore.OAuthToken.make({ accessToken: Redacted.make("new-s3cret") })
            })
        })
        const seen: Array<string | null> = []
        const http = layer((request) => {
          seen.push(request.headers.get("authorization"))
          return request.headers.get("authorization") === "Bearer new-s3cret"
            ? json({ ok: true, user: { id: "U1" } })
            : json({ error: "token old-s3cret expired" }, { status: 401 })
        })
        const slack = caller(Slack.tools({ connection }))
        const lookUp = slack("slack_user_lookup", { user: "U1" })
        const missing = yield* Effect.flip(Effect.provide(lookUp, http))
        expect([missing.reason, missing.message]).toEqual([
          "NotConnected",
          expect.stringContaining('stores a credential named "slack/ada"')
        ])
        expect(seen).toEqual([])
        yield* store.set("tenant/b", "slack/ada", CredentialStore.ApiKey.make({ key: Redacted.make("of another") }))
        expect((yield* Effect.flip(Effect.provide(lookUp, http))).reason).toBe("NotConnected")
        yield* store.set(
          "tenant/a",
          "slack/ada",
          CredentialStore.OAuthToken.make({ accessToken: Redacted.make("old-s3cret") })
        )
        const users = yield* Effect.provide(Effect.all([lookUp, lookUp, lookUp], { concurrency: 3 }), http)
        expect([users.length, refreshes]).toEqual([3, 1])
        const fixed = yield* Effect.flip(
          Effect.provide(
            caller(Slack.tools({ connection: Connection.fixed("Slack", Redacted.make("bad")) }))("slack_user_lookup", {
              user: "U"
            }),
            http
          )
        )
        expect(fixed.reason).toBe("NotConnected")
      }).pipe(Effect.provide(Layer.provide(CredentialStore.layer, [Storage.layerMemory, CredentialKey.layerRandom])))
  )

  it.effect("wrong options of a connection are the failure of each call", () =>
    Effect.gen(function* () {
      const wrong: object = { service: "Slack", namspace: "a", tokn: "t" }
      const made = [Connection.stored, Connection.fromToken].map((make) =>
        (make as (options: object) => Connection.Connection)(wrong)
      )
      for (const connection of made) {
        const { reason, problem } = yield* Effect.flip(connection.credential())
        expect([reason, problem]).toEqual(["InvalidRequest", expect.stringContaining("There is no option")])
      }
    })
  )

  it("tools that change something ask, reading tools do not, and names are the services' own", () => {
    const site = { ...options("x"), baseUrl: "https://x.test" }
    const tools = all(
      [Gmail, GoogleCalendar, GoogleDrive, Slack, GitHub, Linear, Notion, Jira, Confluence, HubSpot].flatMap(
        (one): ReadonlyArray<unknown> => one.tools(site)
      )
    )
    const names = tools.map(({ name }) => name)
    expect([new Set(names).size, names.length]).toEqual([57, 57])
    for (const { annotations, name, needsApproval } of tools) {
      const isChange = /send|create|update|delete|post|comment$|assign|transition_|add_/.test(name)
      expect([name, needsApproval === true, annotations.readOnly === true]).toEqual([name, isChange, !isChange])
    }
    expect(McpCatalogue.find("Linear")?.url).toBe("https://mcp.linear.app/mcp")
    const { servers } = McpCatalogue
    for (const { auth, docs, gives, name, url } of servers) {
      for (const address of [url, docs].map((one) => new URL(one))) {
        const { hash, password, port, protocol, search, username } = address
        expect([protocol, username, password, port, search, hash]).toEqual(["https:", "", "", "", "", ""])
        expect(address.hostname).toMatch(/^[a-z0-9-]+(?:\.[a-z0-9-]+)+$/)
      }
      expect(name).toMatch(/^[a-z0-9]+(?:-[a-z0-9]+)*$/)
      expect(["oauth", "token", "none"]).toContain(auth)
      expect(gives.trim()).toBe(gives)
      expect(gives).not.toBe("")
      expect(McpCatalogue.find(name.toUpperCase())?.url).toBe(url)
    }
    const hosts = servers.map(({ url }) => new URL(url).host)
    expect(new Set(hosts).size).toBe(hosts.length)
    expect(servers.map(({ name }) => name)).toEqual(servers.map(({ name }) => name).toSorted())
    for (const name of ["toString", "__proto__", "", "no such"]) expect(McpCatalogue.find(name)).toBeUndefined()
  })
})
