// Onward's plugin for opencode. `onward install opencode` wrote it, and `--uninstall` removes it.
// Each hook is passed on to `onward hook opencode`, and its answer is done. Whatever goes wrong with
// that, opencode goes on as if this plugin were not there. The hooks of a session are passed on one after
// the other: opencode does not wait for what it calls events, and a turn must not end before its results.
import { spawn } from "node:child_process"

const program = "{program}"

function tell(event) {
  return new Promise((resolve) => {
    let said = ""
    const nothing = () => resolve({})
    try {
      const hook = spawn(program, ["hook", "opencode"], { stdio: ["pipe", "pipe", "ignore"] })
      const late = setTimeout(() => {
        hook.kill()
        nothing()
      }, 10000)
      hook.on("error", nothing)
      hook.stdin.on("error", nothing)
      hook.stdout.on("data", (part) => (said += part))
      hook.on("close", () => {
        clearTimeout(late)
        try {
          resolve(said.trim() ? JSON.parse(said) : {})
        } catch {
          nothing()
        }
      })
      hook.stdin.end(JSON.stringify(event))
    } catch {
      nothing()
    }
  })
}

const turns = new Map()

function ask(event) {
  const before = turns.get(event.sessionID) ?? Promise.resolve()
  const answer = before.then(() => tell(event))
  turns.set(event.sessionID, answer)
  return answer
}

export const Onward = async ({ client, directory }) => {
  // What a session has to be told with its next result.
  const offers = new Map()
  // Which call a person is asked about.
  const asked = new Map()
  // The sessions that are in the middle of a turn.
  const busy = new Set()

  const offer = (sessionID, words) => {
    if (words) offers.set(sessionID, [offers.get(sessionID), words].filter(Boolean).join("\n"))
  }
  const show = async (message) => {
    try {
      await client.tui.showToast({ body: { title: "Onward", message, variant: "warning" } })
    } catch {
      // There is no screen.
    }
  }

  const events = {
    "session.created": async ({ sessionID, info }) => {
      const id = sessionID ?? info?.id
      if (id) offer(id, (await ask({ hook: "session.created", sessionID: id, directory })).context)
    },
    "session.idle": async ({ sessionID }) => {
      if (!sessionID) return
      busy.delete(sessionID)
      await ask({ hook: "session.idle", sessionID, directory })
    },
    "session.deleted": async ({ sessionID, info }) => {
      const id = sessionID ?? info?.id
      if (!id) return
      await ask({ hook: "session.deleted", sessionID: id, directory })
      turns.delete(id)
      offers.delete(id)
      busy.delete(id)
    },
    "permission.asked": async ({ id, sessionID, tool }) => {
      if (!sessionID || !tool?.callID) return
      asked.set(id, tool.callID)
      await ask({ hook: "permission.asked", sessionID, directory, callID: tool.callID })
    },
    "permission.replied": async ({ requestID, sessionID, reply }) => {
      const callID = asked.get(requestID)
      asked.delete(requestID)
      if (callID) await ask({ hook: "permission.replied", sessionID, directory, callID, reply })
    },
    // A tool that fails has no other hook after it. What is told when the turn is over was cut off by
    // its end.
    "message.part.updated": async ({ part }) => {
      if (part?.type !== "tool" || part.state?.status !== "error") return
      const { sessionID, tool, callID, state } = part
      if (!busy.has(sessionID)) return
      const answer = await ask({
        hook: "message.part.updated", sessionID, directory, tool, callID,
        args: state.input, error: state.error,
      })
      offer(sessionID, answer.context)
      if (answer.warn) await show(answer.warn)
    },
  }

  return {
    event: async ({ event }) => {
      await events[event?.type]?.(event.properties ?? {})
    },
    "chat.message": async (input) => {
      busy.add(input.sessionID)
      await ask({ hook: "chat.message", sessionID: input.sessionID, directory })
    },
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input
      const answer = await ask({
        hook: "tool.execute.before", sessionID, directory, tool, callID, args: output.args,
      })
      if (answer.stop) {
        await show(answer.stop)
        await client.session.abort({ path: { id: sessionID } }).catch(() => {})
      }
      if (answer.refuse) throw new Error(answer.refuse)
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input
      // The tools of MCP servers answer with parts, all others with a text.
      const parts = Array.isArray(output?.content) ? output.content : undefined
      const answer = await ask({
        hook: "tool.execute.after", sessionID, directory, tool, callID, args,
        output: parts ?? output?.output, isError: output?.isError, metadata: output?.metadata,
      })
      if (answer.warn) await show(answer.warn)
      offer(sessionID, answer.context)
      const words = offers.get(sessionID)
      if (!words || (!parts && typeof output?.output !== "string")) return
      offers.delete(sessionID)
      if (parts) parts.push({ type: "text", text: words })
      else output.output = `${output.output}\n\n${words}`
    },
  }
}
