/** The workflows of a chat, for `/workflow`. */
import * as Effect from "effect/Effect"
import { isObject } from "../../../../core/Json.ts"
import type { Task } from "../../../../middleware/BackgroundTasks.ts"
import { visible } from "../../../../support/text/untrusted.ts"
import type { Problem, Workflows as ChatWorkflows } from "../../chat/options.ts"
import type { App, Context, Services } from "../app.ts"
import { agentName } from "../workflows/agent.ts"
import { summaryOf, treeOf } from "../workflows/tree.ts"
import { type Background, openByPerson, reopen } from "../workflows/worker.ts"
import * as Workflows from "../workflows/workflows.ts"

/** The group of the tasks that a person starts. */
const group = "workflows of the person"

const toProblem = <A, E extends { readonly message: string }, R>(work: Effect.Effect<A, E, R>) =>
  Effect.mapError(work, ({ message }): Problem => ({ message }))

/** Makes the workflows of a chat. `app` is the agent of the moment, whose model and agents they have. */
export const workflowsInChat = Effect.fnUntraced(function* (
  { places, project }: Context,
  app: () => App,
  background: Background
) {
  const node = yield* Effect.context<Services>()
  const { live, store } = background
  return {
    agent: agentName,
    group,
    saved: Effect.map(
      Effect.provideContext(Workflows.findWorkflows(places, project), node),
      ({ problems, workflows: saved }) => ({ problems, saved })
    ),
    script: (name) =>
      toProblem(
        Effect.map(Workflows.findWorkflow(places, project, name), ({ path, script }) => `${path}\n\n${visible(script)}`)
      ).pipe(Effect.provideContext(node)),
    stored: toProblem(Workflows.listStored(store, places)),
    open: Effect.fnUntraced(function* (name, text, session) {
      yield* toProblem(Effect.provideContext(Workflows.findWorkflow(places, project, name), node))
      const args = Workflows.readText(text)
      return {
        description: JSON.stringify({ name, args }),
        session: yield* openByPerson(app, background, node, session)
      }
    }),
    reopen: Effect.fnUntraced(function* (id) {
      const { name, threadId, updatedAt } = yield* toProblem(Workflows.findStored(store, id))
      const task: Task = {
        key: threadId,
        group,
        agent: agentName,
        description: name,
        status: "suspended",
        turn: 0,
        startedAt: updatedAt,
        updatedAt,
        text: "",
        pending: []
      }
      return { task, session: yield* reopen(app, background, node, { name, threadId }) }
    }),
    live: (kept) => {
      const threadId = isObject(kept) ? kept["threadId"] : undefined
      const entry = typeof threadId === "string" ? live.get(threadId) : undefined
      return entry === undefined
        ? undefined
        : {
            threadId: entry.threadId,
            name: entry.name,
            startedAt: entry.startedAt,
            lines: [`  ${summaryOf(entry.progress)}`, ...treeOf(entry.progress)]
          }
    }
  } satisfies ChatWorkflows
})
