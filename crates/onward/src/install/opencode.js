// Onward's plugin for opencode. `onward install opencode` wrote it, and `--uninstall` removes it.
// Each hook is passed on to `onward hook opencode`, and its answer is done. Whatever goes wrong with
// that, opencode goes on as if this plugin were not there.
import { spawn } from "node:child_process"

const program = "{program}"

function ask(event) {
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

export const Onward = async ({ client, directory }) => {
  // What a session has to be told with its next result.
  const offers = new Map()
  return {
    event: async ({ event }) => {
      const told = event?.properties ?? {}
      const sessionID = told.sessionID ?? told.info?.id
      if (!sessionID || !["session.created", "session.idle", "session.deleted"].includes(event.type)) {
        return
      }
      const answer = await ask({ hook: event.type, sessionID, directory })
      if (answer.context) offers.set(sessionID, answer.context)
    },
    "chat.message": async (input) => {
      await ask({ hook: "chat.message", sessionID: input.sessionID, directory })
    },
    "tool.execute.before": async (input, output) => {
      const { tool, sessionID, callID } = input
      const answer = await ask({
        hook: "tool.execute.before", sessionID, directory, tool, callID, args: output.args,
      })
      if (answer.stop) {
        await client.session.abort({ path: { id: sessionID } }).catch(() => {})
      }
      if (answer.refuse) throw new Error(answer.refuse)
    },
    "permission.ask": async (input) => {
      const { sessionID, callID } = input ?? {}
      if (sessionID && callID) await ask({ hook: "permission.ask", sessionID, directory, callID })
    },
    "tool.execute.after": async (input, output) => {
      const { tool, sessionID, callID, args } = input
      const answer = await ask({
        hook: "tool.execute.after", sessionID, directory, tool, callID, args,
        output: output.output, metadata: output.metadata,
      })
      const words = [offers.get(sessionID), answer.context].filter(Boolean)
      offers.delete(sessionID)
      if (words.length) output.output = `${output.output}\n\n${words.join("\n")}`
    },
  }
}
