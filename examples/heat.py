import hyrespinn as hp
import jax.numpy as jnp


class Heat(hp.Problem):  # u_t = ν u_xx on x ∈ [0, 1], held at zero at both ends
    nu: float = 0.05
    domain = hp.TimeBox(t=(0, 1), x=(0, 1))
    fields = ("u",)

    def residual(self, u, p):  # u: the field with its derivatives; p: the point
        return u.t - self.nu * u.xx

    def conditions(self):
        return [hp.Initial(lambda p: jnp.sin(jnp.pi * p.x)), hp.Dirichlet(0.0)]


if __name__ == "__main__":
    solution = hp.solve(Heat(), seed=0)  # progress, sensible defaults, returns a Solution
    print(solution(t=0.5, x=0.25), solution.derivative("xx", t=0.5, x=0.25))
    solution.plot("heat.png")
