/** Prompts and resources of servers, and the completion of their arguments. */
import type { Client } from "@modelcontextprotocol/client"
import * as Effect from "effect/Effect"
import * as Queue from "effect/Queue"
import * as Stream from "effect/Stream"
import * as SubscriptionRef from "effect/SubscriptionRef"
import { cut } from "../../../support/text/text.ts"
import { oneLine, visible } from "../../../support/text/untrusted.ts"
import type { McpError } from "../../McpError.ts"
import * as Errors from "../errors.ts"
import type { App, Completable, Prompt, Resource, ResourceContent } from "../model.ts"
import type { Session } from "../wire/session.ts"
import type { SupervisedServer } from "../wire/supervisor.ts"
import { readApp } from "./apps.ts"
import { blockOf, messagesOf, resourceContent } from "./results.ts"

const about = (text: string | undefined): string => cut(visible(text ?? ""), 2_000)

const has = (client: Client, what: "prompts" | "resources" | "completions"): boolean =>
  client.getServerCapabilities()?.[what] !== undefined

const promptsOf = (server: SupervisedServer, session: Session): Effect.Effect<ReadonlyArray<Prompt>, McpError> =>
  session.request(async (client, signal) => {
    if (!has(client, "prompts")) return []
    const { prompts } = await client.listPrompts({}, { cacheMode: "refresh", signal })
    return prompts.map((prompt): Prompt => ({
      server: server.target.name,
      name: prompt.name,
      title: prompt.title === undefined ? undefined : oneLine(prompt.title),
      description: about(prompt.description),
      arguments: (prompt.arguments ?? []).map(({ description, name, required }) => ({
        name,
        description: about(description),
        isRequired: required === true
      })),
      get: (args) =>
        Effect.flatMap(server.session, (now) =>
          now.request(async (sdkClient, abort) => {
            const filled = await sdkClient.getPrompt({ name: prompt.name, arguments: { ...args } }, { signal: abort })
            return messagesOf(filled.messages.map(({ content, role }) => ({ role, content: [blockOf(content)] })))
          })
        )
    }))
  })

const resourcesOf = (server: string, session: Session): Effect.Effect<ReadonlyArray<Resource>, McpError> =>
  session.request(async (client, signal) => {
    if (!has(client, "resources")) return []
    const options = { cacheMode: "refresh", signal } as const
    const { resources } = await client.listResources({}, options)
    // A server may have resources and know nothing of templates.
    const templates = await client.listResourceTemplates({}, options).then(
      (listed) => listed.resourceTemplates,
      () => []
    )
    return [
      ...resources.map((one): Resource => ({
        server,
        uri: one.uri,
        isTemplate: false,
        name: oneLine(one.title ?? one.name),
        description: about(one.description),
        mimeType: one.mimeType,
        size: one.size
      })),
      ...templates.map((one): Resource => ({
        server,
        uri: one.uriTemplate,
        isTemplate: true,
        name: oneLine(one.title ?? one.name),
        description: about(one.description),
        mimeType: one.mimeType,
        size: undefined
      }))
    ]
  })

/** A value for each change of a resource. One that nobody has taken yet stands for those after it. */
const updatesOf = (server: string, { client, subscribe }: Session, uri: string): Stream.Stream<void, McpError> =>
  client.getServerCapabilities()?.resources?.subscribe === true
    ? Stream.callback<void, McpError>(
        (queue) =>
          Effect.catch(
            subscribe(uri, () => void Queue.offerUnsafe(queue, undefined)),
            // The next connection is asked again.
            (error) => (error.reason === "Lost" ? Effect.never : Queue.fail(queue, error))
          ),
        { bufferSize: 1, strategy: "sliding" }
      )
    : Stream.fail(Errors.withoutSubscriptions(server))

/** The connection of a server that stands now. */
const present = (server: SupervisedServer): Effect.Effect<Session | undefined> =>
  Effect.map(SubscriptionRef.get(server.state), (state) => (state._tag === "Connected" ? state.session : undefined))

/** Makes the operations on lists. Resources are listed again when the server says that they changed. */
export const make = (
  all: ReadonlyArray<SupervisedServer>,
  settled: (server: SupervisedServer) => Effect.Effect<void>,
  find: (name: string) => Effect.Effect<SupervisedServer, McpError>
) => {
  const listings = new WeakMap<SupervisedServer, { readonly count: number; readonly list: ReadonlyArray<Resource> }>()
  const listResources = (server: SupervisedServer, session: Session) =>
    Effect.suspend(() => {
      const { count } = server.edition
      const listing = listings.get(server)
      if (listing?.count === count) return Effect.succeed(listing.list)
      return Effect.tap(resourcesOf(server.target.name, session), (list) =>
        Effect.sync(() => listings.set(server, { count, list }))
      )
    })
  /** Asks the servers that are there. */
  const gather = <A>(ask: (server: SupervisedServer, session: Session) => Effect.Effect<ReadonlyArray<A>, McpError>) =>
    Effect.map(
      Effect.forEach(
        all,
        (server) =>
          Effect.andThen(
            settled(server),
            Effect.flatMap(present(server), (session) =>
              session === undefined
                ? Effect.succeed([])
                : Effect.catch(ask(server, session), (): Effect.Effect<ReadonlyArray<A>> => Effect.succeed([]))
            )
          ),
        { concurrency: "unbounded" }
      ),
      (lists): ReadonlyArray<A> => lists.flat()
    )
  const sessionOf = (name: string) => Effect.flatMap(find(name), ({ session }) => session)
  return {
    prompts: gather(promptsOf),
    resources: (name?: string): Effect.Effect<ReadonlyArray<Resource>, McpError> =>
      name === undefined
        ? gather(listResources)
        : Effect.flatMap(find(name), (server) =>
            Effect.flatMap(server.session, (session) => listResources(server, session))
          ),
    read: (name: string, uri: string): Effect.Effect<ReadonlyArray<ResourceContent>, McpError> =>
      Effect.flatMap(sessionOf(name), (session) =>
        session.request(async (client, signal) =>
          (await client.readResource({ uri }, { signal, cacheMode: "refresh" })).contents.map(resourceContent)
        )
      ),
    app: (name: string, uri: string): Effect.Effect<App, McpError> =>
      Effect.flatMap(sessionOf(name), (session) => readApp(name, session, uri)),
    updates: (name: string, uri: string): Stream.Stream<void, McpError> =>
      Stream.unwrap(
        Effect.map(find(name), ({ state }) =>
          SubscriptionRef.changes(state).pipe(
            Stream.switchMap((now) => (now._tag === "Connected" ? updatesOf(name, now.session, uri) : Stream.empty))
          )
        )
      ),
    complete: (
      name: string,
      of: Completable,
      argument: { readonly name: string; readonly value: string },
      others?: { readonly [name: string]: string }
    ): Effect.Effect<ReadonlyArray<string>, McpError> =>
      Effect.flatMap(sessionOf(name), (session) =>
        session.request(async (client, signal) => {
          if (!has(client, "completions")) return []
          const ref =
            "prompt" in of
              ? { type: "ref/prompt" as const, name: of.prompt }
              : { type: "ref/resource" as const, uri: of.template }
          const context = others === undefined ? {} : { context: { arguments: { ...others } } }
          const { completion } = await client.complete({ ref, argument: { ...argument }, ...context }, { signal })
          return completion.values.slice(0, 100).map(oneLine)
        })
      )
  }
}
