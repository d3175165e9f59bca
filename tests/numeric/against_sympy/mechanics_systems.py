"""Mechanical systems for sympy.physics.mechanics, by Kane's and Lagrange's methods, as users write them.

Each function returns a `System`: M x' = F for the coordinates and speeds x = (q, u), followed by the
multipliers where a Lagrangian has constraints.
"""

from typing import Any, NamedTuple

import sympy as sp
from sympy.physics import mechanics as me
from sympy.physics.mechanics.models import multi_mass_spring_damper, n_link_pendulum_on_cart

t = me.dynamicsymbols._t


class System(NamedTuple):
    """Coordinates, speeds, further inputs, mass matrix, forcing."""

    q: Any
    u: Any
    others: Any
    M: Any
    F: Any


def finished(method, q, u):
    """The system of a method whose equations are formed."""
    M, F = method.mass_matrix_full, method.forcing_full
    own = {*q, *u}
    found = M.free_symbols | F.free_symbols | me.find_dynamicsymbols(M) | me.find_dynamicsymbols(F)
    return System(list(q), list(u), sorted(found - own - {t}, key=str), M, F)


def kane(frame, q, u, bodies, loads=(), **options):
    """Kane's method with u = q'."""
    equations = options.pop("equations", [u_k - q_k.diff(t) for q_k, u_k in zip(q, u, strict=False)])
    method = me.KanesMethod(frame, q_ind=q, u_ind=u, kd_eqs=equations, **options)
    method.kanes_equations(list(bodies), list(loads))
    return finished(method, q, u)


def lagrange(L, q, **options):
    """Lagrange's method."""
    method = me.LagrangesMethod(L, q, **options)
    method.form_lagranges_equations()
    return finished(method, q, [c.diff(t) for c in q])


def pendulum(count, method):
    """A chain of ``count`` particles on massless rods in a plane."""
    q, u = sp.Matrix(me.dynamicsymbols(f"q:{count}")), sp.Matrix(me.dynamicsymbols(f"u:{count}"))
    m, length, g = sp.symbols(f"m:{count}"), sp.symbols(f"l:{count}"), sp.Symbol("g")
    N, origin = me.ReferenceFrame("N"), me.Point("O")
    origin.set_vel(N, 0)
    bodies, loads, place = [], [], origin
    for k in range(count):
        frame = N.orientnew(f"A{k}", "Axis", [q[k], N.z])
        if method == "kane":
            frame.set_ang_vel(N, u[k] * N.z)
        new = place.locatenew(f"P{k}", length[k] * frame.x)
        new.v2pt_theory(place, N, frame)
        bodies.append(me.Particle(f"p{k}", new, m[k]))
        loads.append((new, m[k] * g * N.x))
        bodies[-1].potential_energy = -m[k] * g * new.pos_from(origin).dot(N.x)
        place = new
    if method == "kane":
        return kane(N, q, u, bodies, loads)
    return lagrange(me.Lagrangian(N, *bodies), list(q))


def mass_spring_damper():
    """m x'' = f − k x − c x'."""
    q, u, f = me.dynamicsymbols("q u f")
    m, c, k = sp.symbols("m c k")
    N, P = me.ReferenceFrame("N"), me.Point("P")
    P.set_vel(N, u * N.x)
    return kane(N, [q], [u], [me.Particle("block", P, m)], [(P, (f - k * q - c * u) * N.x)])


def two_masses():
    """Two blocks, springs and dampers between them."""
    q, u = me.dynamicsymbols("q1 q2"), me.dynamicsymbols("u1 u2")
    m, c1, c2, k1, k2 = sp.symbols("m c1 c2 k1 k2")
    N, P1, P2 = me.ReferenceFrame("N"), me.Point("P1"), me.Point("P2")
    P1.set_vel(N, u[0] * N.x)
    P2.set_vel(N, (u[0] + u[1]) * N.x)
    loads = [
        (P1, (-k1 * q[0] - c1 * u[0] + k2 * q[1] + c2 * u[1]) * N.x),
        (P2, (-k2 * q[1] - c2 * u[1]) * N.x),
    ]
    return kane(N, q, u, [me.Particle("a", P1, m), me.Particle("b", P2, m)], loads)


def rolling_disc():
    """A disc that rolls without slip on a plane: lean, spin and yaw, three speeds."""
    q, u = me.dynamicsymbols("q1 q2 q3"), me.dynamicsymbols("u1 u2 u3")
    r, m, g = sp.symbols("r m g")
    N = me.ReferenceFrame("N")
    Y = N.orientnew("Y", "Axis", [q[0], N.z])
    L = Y.orientnew("L", "Axis", [q[1], Y.x])
    R = L.orientnew("R", "Axis", [q[2], L.y])
    w_R_N_qd = R.ang_vel_in(N)
    R.set_ang_vel(N, u[0] * L.x + u[1] * L.y + u[2] * L.z)
    contact = me.Point("C")
    contact.set_vel(N, 0)
    center = contact.locatenew("D", r * L.z)
    center.v2pt_theory(contact, N, R)
    inertia = me.inertia(L, m / 4 * r**2, m / 2 * r**2, m / 4 * r**2)
    equations = [(R.ang_vel_in(N) - w_R_N_qd).dot(axis) for axis in L]
    body = me.RigidBody("disc", center, R, m, (inertia, center))
    return kane(N, q, u, [body], [(center, -m * g * Y.z)], equations=equations)


def disc_on_an_incline():
    """A disc that rolls down an incline, by its energy."""
    y, theta = me.dynamicsymbols("y theta")
    m, g, R, length, alpha = sp.symbols("m g R l alpha")
    kinetic = m * y.diff(t) ** 2 / 2 + m * R**2 / 4 * theta.diff(t) ** 2
    potential = m * g * (length - y) * sp.sin(alpha)
    return lagrange(kinetic - potential, [y, theta], hol_coneqs=[y - R * theta])


def pendulum_in_space():
    """A spherical pendulum."""
    theta, phi = me.dynamicsymbols("theta phi")
    m, g, length = sp.symbols("m g l")
    kinetic = m * length**2 / 2 * (theta.diff(t) ** 2 + sp.sin(theta) ** 2 * phi.diff(t) ** 2)
    return lagrange(kinetic + m * g * length * sp.cos(theta), [theta, phi])


def pendulum_by_constraint():
    """A pendulum in x and y, whose length is a constraint."""
    x, y = me.dynamicsymbols("x y")
    m, g, length = sp.symbols("m g l")
    L = m * (x.diff(t) ** 2 + y.diff(t) ** 2) / 2 + m * g * x
    return lagrange(L, [x, y], hol_coneqs=[x**2 + y**2 - length**2])


def bead_on_a_hoop():
    """A bead on a hoop that turns."""
    theta = me.dynamicsymbols("theta")
    m, g, R, w = sp.symbols("m g R w")
    kinetic = m * R**2 * (theta.diff(t) ** 2 + w**2 * sp.sin(theta) ** 2) / 2
    return lagrange(kinetic + m * g * R * sp.cos(theta), [theta])


def pushed_pendulum():
    """A pendulum on a sliding pivot, with a force and damping."""
    x, theta, f = me.dynamicsymbols("x theta f")
    M, m, g, length, c = sp.symbols("M m g l c")
    N, A = me.ReferenceFrame("N"), me.ReferenceFrame("A")
    A.orient(N, "Axis", [theta, N.z])
    origin, pivot = me.Point("O"), me.Point("S")
    origin.set_vel(N, 0)
    pivot.set_pos(origin, x * N.x)
    pivot.set_vel(N, x.diff(t) * N.x)
    bob = pivot.locatenew("B", -length * A.y)
    bob.v2pt_theory(pivot, N, A)
    slider, ball = me.Particle("slider", pivot, M), me.Particle("ball", bob, m)
    ball.potential_energy = m * g * bob.pos_from(origin).dot(N.y)
    forces = [(pivot, (f - c * x.diff(t)) * N.x)]
    return lagrange(me.Lagrangian(N, slider, ball), [x, theta], forcelist=forces, frame=N)


def gyroscope():
    """A heavy symmetric top by Euler's angles."""
    phi, theta, psi = me.dynamicsymbols("phi theta psi")
    I1, I3, m, g, length = sp.symbols("I1 I3 m g l")
    swing = theta.diff(t) ** 2 + phi.diff(t) ** 2 * sp.sin(theta) ** 2
    spin = psi.diff(t) + phi.diff(t) * sp.cos(theta)
    L = I1 * swing / 2 + I3 * spin**2 / 2 - m * g * length * sp.cos(theta)
    return lagrange(L, [phi, theta, psi])


def elastic_pendulum():
    """A mass on a spring that swings."""
    r, theta = me.dynamicsymbols("r theta")
    m, g, k, length = sp.symbols("m g k l")
    kinetic = m * (r.diff(t) ** 2 + r**2 * theta.diff(t) ** 2) / 2
    return lagrange(kinetic + m * g * r * sp.cos(theta) - k * (r - length) ** 2 / 2, [r, theta])


def two_bodies_in_space():
    """A planet around a star, in polar coordinates."""
    r, phi = me.dynamicsymbols("r phi")
    m, G = sp.symbols("m G")
    return lagrange(m * (r.diff(t) ** 2 + r**2 * phi.diff(t) ** 2) / 2 + G * m / r, [r, phi])


def chaos_pendulum():
    """A plate that turns at the end of a rod: two rotations about axes that are not parallel."""
    theta, phi, omega, alpha = me.dynamicsymbols("theta phi omega alpha")
    mA, mB, lA, lB, h, w, g = sp.symbols("mA mB lA lB h w g")
    N, A, B = me.ReferenceFrame("N"), me.ReferenceFrame("A"), me.ReferenceFrame("B")
    A.orient(N, "Axis", [theta, N.y])
    B.orient(A, "Axis", [phi, A.z])
    A.set_ang_vel(N, omega * N.y)
    B.set_ang_vel(A, alpha * A.z)
    origin = me.Point("O")
    origin.set_vel(N, 0)
    rod, plate = origin.locatenew("Ao", (lB - h / 2) / 2 * A.z), origin.locatenew("Bo", lB * A.z)
    rod.v2pt_theory(origin, N, A)
    plate.v2pt_theory(origin, N, A)
    I_rod = me.inertia(A, mA * lA**2 / 12, mA * lA**2 / 12, 0)
    I_plate = me.inertia(B, mB * h**2 / 12, mB * (w**2 + h**2) / 12, mB * w**2 / 12)
    bodies = [
        me.RigidBody("rod", rod, A, mA, (I_rod, rod)),
        me.RigidBody("plate", plate, B, mB, (I_plate, plate)),
    ]
    return kane(N, [theta, phi], [omega, alpha], bodies, [(rod, mA * g * N.z), (plate, mB * g * N.z)])


def free_rigid_body():
    """A body that turns freely: Euler's equations with body-fixed angles."""
    q, u = me.dynamicsymbols("q1 q2 q3"), me.dynamicsymbols("u1 u2 u3")
    Ix, Iy, Iz, m = sp.symbols("Ix Iy Iz m")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient(N, "Body", q, "123")
    turning = B.ang_vel_in(N)
    B.set_ang_vel(N, u[0] * B.x + u[1] * B.y + u[2] * B.z)
    center = me.Point("C")
    center.set_vel(N, 0)
    equations = [(B.ang_vel_in(N) - turning).dot(axis) for axis in B]
    body = me.RigidBody("body", center, B, m, (me.inertia(B, Ix, Iy, Iz), center))
    return kane(N, q, u, [body], [], equations=equations)


def pendulum_of_two_coordinates():
    """A pendulum by Kane's method in x and y, one of them dependent."""
    q, u = me.dynamicsymbols("q1 q2"), me.dynamicsymbols("u1 u2")
    L, m, g = sp.symbols("L m g")
    N = me.ReferenceFrame("N")
    pivot, P = me.Point("O"), me.Point("P")
    pivot.set_vel(N, 0)
    P.set_pos(pivot, q[0] * N.x + q[1] * N.y)
    P.set_vel(N, u[0] * N.x + u[1] * N.y)
    rod = sp.Matrix([q[0] ** 2 + q[1] ** 2 - L**2])
    speed = sp.Matrix([q[0] * u[0] + q[1] * u[1]])
    method = me.KanesMethod(
        N, q_ind=[q[1]], u_ind=[u[1]], q_dependent=[q[0]], u_dependent=[u[0]],
        kd_eqs=[u[0] - q[0].diff(t), u[1] - q[1].diff(t)], configuration_constraints=rod,
        velocity_constraints=speed, acceleration_constraints=speed.diff(t),
    )  # fmt: skip
    method.kanes_equations([me.Particle("bob", P, m)], [(P, m * g * N.x)])
    return finished(method, method.q, method.u)


def skate():
    """A blade on ice that does not move across itself: a constraint of speeds alone."""
    q, u = me.dynamicsymbols("x y theta"), me.dynamicsymbols("u1 u2 u3")
    m, inertia, g, slope = sp.symbols("m I g a")
    N, B = me.ReferenceFrame("N"), me.ReferenceFrame("B")
    B.orient(N, "Axis", [q[2], N.z])
    B.set_ang_vel(N, u[2] * N.z)
    C = me.Point("C")
    C.set_vel(N, u[0] * N.x + u[1] * N.y)
    across = sp.Matrix([C.vel(N).dot(B.y)])
    method = me.KanesMethod(
        N, q_ind=q, u_ind=[u[0], u[2]], u_dependent=[u[1]],
        kd_eqs=[a - b.diff(t) for a, b in zip(u, q, strict=True)],
        velocity_constraints=across,
    )  # fmt: skip
    blade = me.RigidBody("blade", C, B, m, (me.inertia(B, 0, 0, inertia), C))
    method.kanes_equations([blade], [(C, m * g * sp.sin(slope) * N.x)])
    return finished(method, method.q, method.u)


def joints(count):
    """A chain of bodies by pin joints and `JointsMethod`."""
    q, u = me.dynamicsymbols(f"q:{count}"), me.dynamicsymbols(f"u:{count}")
    m, length, g = sp.symbols("m l g")
    parent = wall = me.RigidBody("wall")
    made = []
    for k in range(count):
        body = me.RigidBody(f"link{k}", mass=m)
        options = {"child_point": length * body.x, "joint_axis": parent.z}
        made.append(me.PinJoint(f"pin{k}", parent, body, q[k], u[k], **options))
        parent = body
    wall_frame = wall.frame
    system = me.System.from_newtonian(wall)
    system.add_joints(*made)
    system.apply_uniform_gravity(-g * wall_frame.y)
    system.form_eoms()
    return finished(system.eom_method, list(q), list(u))


def slider():
    """Two blocks on rails by prismatic joints, with a spring between them."""
    q, u = me.dynamicsymbols("q1 q2"), me.dynamicsymbols("u1 u2")
    k, length = sp.symbols("k l")
    wall, a, b = me.RigidBody("wall"), me.RigidBody("a"), me.RigidBody("b")
    rails = [me.PrismaticJoint("J1", wall, a, q[0], u[0]), me.PrismaticJoint("J2", a, b, q[1], u[1])]
    system = me.System.from_newtonian(wall)
    system.add_joints(*rails)
    spring = me.LinearSpring(k, me.LinearPathway(a.masscenter, b.masscenter), length)
    system.add_actuators(spring)
    system.form_eoms()
    return finished(system.eom_method, list(q), list(u))


def of_model(method):
    """A ready model of SymPy."""
    return finished(method, method.q, method.u)


SYSTEMS = {
    "mass, spring and damper": mass_spring_damper,
    "two masses": two_masses,
    "pendulum by Kane": lambda: pendulum(1, "kane"),
    "pendulum by Lagrange": lambda: pendulum(1, "lagrange"),
    "disc on an incline": disc_on_an_incline,
    "bead on a hoop": bead_on_a_hoop,
    "pendulum by a constraint": pendulum_by_constraint,
    "planet": two_bodies_in_space,
    "rolling disc": rolling_disc,
}
"""A handful for every run."""

MORE = {
    "double pendulum by Kane": lambda: pendulum(2, "kane"),
    "double pendulum by Lagrange": lambda: pendulum(2, "lagrange"),
    "triple pendulum by Kane": lambda: pendulum(3, "kane"),
    "triple pendulum by Lagrange": lambda: pendulum(3, "lagrange"),
    "five pendulums by Kane": lambda: pendulum(5, "kane"),
    "pendulum in space": pendulum_in_space,
    "pushed pendulum": pushed_pendulum,
    "gyroscope": gyroscope,
    "elastic pendulum": elastic_pendulum,
    "chaos pendulum": chaos_pendulum,
    "free rigid body": free_rigid_body,
    "one joint": lambda: joints(1),
    "two joints": lambda: joints(2),
    "three joints": lambda: joints(3),
    "slider": slider,
    "pendulum of two coordinates": pendulum_of_two_coordinates,
    "skate": skate,
    **{f"{n} masses": lambda n=n: of_model(multi_mass_spring_damper(n, True, True)) for n in (1, 2, 3, 5, 8)},
    **{f"{n} masses, free": lambda n=n: of_model(multi_mass_spring_damper(n)) for n in (2, 6)},
    **{f"cart with {n} links": lambda n=n: of_model(n_link_pendulum_on_cart(n)) for n in (1, 2, 3, 4)},
    **{
        f"cart with {n} driven links": lambda n=n: of_model(n_link_pendulum_on_cart(n, True, True))
        for n in (1, 2, 3)
    },
    "four pendulums by Lagrange": lambda: pendulum(4, "lagrange"),
}
