/**
 * Slack: channels, messages, threads, people.
 *
 * The token's scopes: `channels:read`, `channels:history`, `users:read`, `users:read.email`, `chat:write`; searching
 * needs a person's token with `search:read`.
 */
import * as Effect from "effect/Effect"
import * as HttpBody from "effect/http/HttpBody"
import * as Predicate from "effect/Predicate"
import * as Schema from "effect/Schema"
import { cut } from "../support/text/text.ts"
import { limitField, makeClient, makeTools, type Options, optionalText, text } from "./internal/connectors/client.ts"
import { type Answer, jsonOf, type Refusal } from "./internal/connectors/http.ts"

export type { Options }

/** Schema of a message, as far as it is read. `ts` is its id within its channel. */
export const Message = Schema.Struct({
  ts: Schema.String,
  user: Schema.optionalKey(Schema.String),
  text: Schema.optionalKey(Schema.String),
  thread_ts: Schema.optionalKey(Schema.String),
  reply_count: Schema.optionalKey(Schema.Finite)
})
export interface Message extends Schema.Schema.Type<typeof Message> {}

const Found = Schema.Struct({
  ts: Schema.String,
  text: Schema.optionalKey(Schema.String),
  username: Schema.optionalKey(Schema.NullOr(Schema.String)),
  permalink: Schema.optionalKey(Schema.String),
  channel: Schema.Struct({ id: Schema.String, name: Schema.optionalKey(Schema.String) })
})

const Channel = Schema.Struct({
  id: Schema.String,
  name: Schema.optionalKey(Schema.String),
  is_private: Schema.optionalKey(Schema.Boolean),
  num_members: Schema.optionalKey(Schema.Finite),
  topic: Schema.optionalKey(Schema.Struct({ value: Schema.String }))
})

const User = Schema.Struct({
  id: Schema.String,
  name: Schema.optionalKey(Schema.String),
  real_name: Schema.optionalKey(Schema.String),
  tz: Schema.optionalKey(Schema.String),
  profile: Schema.optionalKey(
    Schema.Struct({ email: Schema.optionalKey(Schema.String), title: Schema.optionalKey(Schema.String) })
  )
})

const cursor = {
  response_metadata: Schema.optionalKey(Schema.Struct({ next_cursor: Schema.optionalKey(Schema.String) }))
}

const unauthorised = ["invalid_auth", "not_authed", "token_revoked", "token_expired", "account_inactive"]

/** Slack says with status 200 what went wrong. */
const refusal = (answer: Answer): Refusal | undefined => {
  if (answer.status !== 200) return undefined
  const json = jsonOf(answer)
  if (!Predicate.isObject(json) || json["ok"] !== false) return undefined
  const error = cut(typeof json["error"] === "string" ? json["error"] : "unknown_error", 100)
  const needed = typeof json["needed"] === "string" ? ` It needs the scope ${cut(json["needed"], 100)}.` : ""
  return {
    problem: `it refused: ${JSON.stringify(error)}.${needed}`,
    isRateLimit: error === "ratelimited",
    isUnauthorised: unauthorised.includes(error)
  }
}

/** Makes a client of Slack for one token. */
export const make = <R = never>({ baseUrl = "https://slack.com/api", connection }: Options<R>) => {
  const http = makeClient({ service: "Slack", connection, baseUrl, refusal })
  const messages = (operation: string, path: string, query: { readonly [name: string]: string }) =>
    http.list(
      operation,
      path,
      Schema.Struct({ messages: Schema.Array(Message), ...cursor }),
      "cursor",
      { ...query, limit: 100 },
      ({ messages: items, response_metadata }) => ({ items, next: response_metadata?.next_cursor })
    )
  return {
    /** Messages by Slack's own search words, the latest first. */
    search: (query: string) =>
      http.list(
        "search messages",
        "/search.messages",
        Schema.Struct({
          messages: Schema.Struct({
            matches: Schema.Array(Found),
            paging: Schema.optionalKey(Schema.Struct({ page: Schema.Finite, pages: Schema.Finite }))
          })
        }),
        "page",
        { query, sort: "timestamp", count: 100 },
        ({ messages: { matches, paging } }) => ({
          items: matches,
          next: paging !== undefined && paging.page < paging.pages ? paging.page + 1 : undefined
        })
      ),
    channels: () =>
      http.list(
        "list channels",
        "/conversations.list",
        Schema.Struct({ channels: Schema.Array(Channel), ...cursor }),
        "cursor",
        { exclude_archived: true, limit: 200 },
        ({ channels, response_metadata }) => ({ items: channels, next: response_metadata?.next_cursor })
      ),
    /** Messages of a channel, the latest first. */
    history: (channel: string) => messages("read a channel", "/conversations.history", { channel }),
    /** A message and its answers, in their order. */
    replies: (channel: string, ts: string) => messages("read a thread", "/conversations.replies", { channel, ts }),
    userByEmail: (email: string) =>
      Effect.map(
        http.get("look up a user", "/users.lookupByEmail", Schema.Struct({ user: User }), { email }),
        ({ user }) => user
      ),
    user: (id: string) =>
      Effect.map(
        http.get("look up a user", "/users.info", Schema.Struct({ user: User }), { user: id }),
        ({ user }) => user
      ),
    /** Posts a message, in a thread if one is named. */
    post: (channel: string, body: string, thread?: string) =>
      http.request(
        "post a message",
        "POST",
        "/chat.postMessage",
        Schema.Struct({ channel: Schema.String, ts: Schema.String }),
        {
          body: HttpBody.text(
            JSON.stringify({ channel, text: body, ...(thread === undefined ? {} : { thread_ts: thread }) }),
            "application/json; charset=utf-8"
          )
        }
      )
  }
}

/** Makes the tools of Slack. */
export const tools = <R = never>(options: Options<R>) => {
  const slack = make(options)
  const { listing, reading, writing } = makeTools("Slack")
  const channel = text("The id of a channel, as slack_list_channels gave it")
  return [
    listing(
      "slack_search_messages",
      "Finds messages in Slack.",
      { query: text('Slack\'s search words ("in:#general from:@ada")'), limit: limitField },
      ({ query }) => slack.search(query)
    ),
    listing("slack_list_channels", "Lists the channels of Slack.", { limit: limitField }, () => slack.channels()),
    listing(
      "slack_channel_history",
      "Reads the latest messages of a channel.",
      { channel, limit: limitField },
      (args) => slack.history(args.channel)
    ),
    listing(
      "slack_get_thread_replies",
      "Reads a thread: a message and its answers.",
      { channel, ts: text("The ts of its first message"), limit: limitField },
      (args) => slack.replies(args.channel, args.ts)
    ),
    reading(
      "slack_user_lookup",
      "Looks up a person in Slack.",
      { user: text("An address, or the id of a user") },
      ({ user }) => (user.includes("@") ? slack.userByEmail(user) : slack.user(user))
    ),
    writing(
      "slack_post_message",
      "Posts a message to a channel, or as an answer in a thread.",
      { channel, text: text("In Slack's markup"), thread_ts: optionalText("The ts of the thread's first message") },
      (args) => slack.post(args.channel, args.text, args.thread_ts)
    )
  ] as const
}
