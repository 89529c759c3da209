/** Modes and options of a session, as the protocol has them. */
import type * as Acp from "@agentclientprotocol/sdk"
import type { Gate, Session } from "./model.ts"

/** The id of the option that is the mode. Clients show modes or options; both say the same. */
export const modeId = "mode"

const modesOf = (gate: Gate): Acp.SessionModeState => ({
  currentModeId: gate.mode(),
  availableModes: gate.modes.map(({ description, id, name }) => ({
    id,
    name,
    ...(description === undefined ? {} : { description })
  }))
})

export const optionsOf = (session: Session): Array<Acp.SessionConfigOption> => {
  const { gate } = session
  const mode: Acp.SessionConfigOption = {
    type: "select",
    id: modeId,
    name: "Mode",
    category: "mode",
    currentValue: gate.mode(),
    options: gate.modes.map(({ description, id, name }) => ({
      value: id,
      name,
      ...(description === undefined ? {} : { description })
    }))
  }
  const others = (session.settings?.() ?? []).map(
    ({ category, choices, description, id, name, value }): Acp.SessionConfigOption => ({
      type: "select",
      id,
      name,
      currentValue: value,
      options: choices.map((choice) => ({
        value: choice.value,
        name: choice.name,
        ...(choice.description === undefined ? {} : { description: choice.description })
      })),
      ...(category === undefined ? {} : { category }),
      ...(description === undefined ? {} : { description })
    })
  )
  return [mode, ...others]
}

/** The state of modes and options, in the answers that open a session. */
export const stateOf = (session: Session) => ({ modes: modesOf(session.gate), configOptions: optionsOf(session) })

/** Tells the client the present mode and options. */
export const updatesOf = (session: Session): ReadonlyArray<Acp.SessionUpdate> => [
  { sessionUpdate: "current_mode_update", currentModeId: session.gate.mode() },
  { sessionUpdate: "config_option_update", configOptions: optionsOf(session) }
]
