"""Every system that SymPy's own tests of mechanics form is lowered as it is.

The tests of sympy.physics.mechanics run unchanged; every object of Kane's or Lagrange's method that forms its
equations there is recorded. Mass matrix, forcing and Jacobian agree with SymPy's matrices in 60 digits.
"""

import importlib

import mpmath
import numpy as np
import pytest
import sympy as sp
from sympy.physics import mechanics as me

import symad
from symad.numeric import lower
from tests.numeric.against_sympy.mechanics_points import numbers, point_of
from tests.numeric.against_sympy.mechanics_systems import finished

SYSTEMS = {
    "test_actuator.TestForcedMassSpringDamperModel.test_force_acuator": 1,
    "test_actuator.TestForcedMassSpringDamperModel.test_linear_spring_linear_damper": 1,
    "test_jointsmethod.test_jointsmethod": 1,
    "test_jointsmethod.test_rigid_body_particle_compatibility": 1,
    "test_jointsmethod.test_complete_simple_double_pendulum": 1,
    "test_jointsmethod.test_two_dof_joints": 1,
    "test_jointsmethod.test_simple_pedulum": 1,
    "test_jointsmethod.test_chaos_pendulum": 1,
    "test_jointsmethod.test_four_bar_linkage_with_manual_constraints": 1,
    "test_kane.test_one_dof": 1,
    "test_kane.test_two_dof": 1,
    "test_kane.test_pend": 1,
    "test_kane.test_rolling_disc": 1,
    "test_kane.test_aux": 2,
    "test_kane.test_parallel_axis": 1,
    "test_kane.test_input_format": 3,
    "test_kane.test_implicit_kinematics": 1,
    "test_kane.test_issue_24887": 1,
    "test_kane2.test_aux_dep": 1,
    "test_kane2.test_non_central_inertia": 1,
    "test_kane2.test_sub_qdot": 1,
    "test_kane2.test_sub_qdot2": 2,
    "test_kane3.test_bicycle": 1,
    "test_kane4.test_replace_qdots_in_force": 6,
    "test_kane5.test_kane_rolling_disc_lu": 1,
    "test_lagrange.test_disc_on_an_incline_plane": 1,
    "test_lagrange.test_simp_pen": 1,
    "test_lagrange.test_nonminimal_pendulum": 1,
    "test_lagrange.test_dub_pen": 1,
    "test_lagrange.test_rolling_disc": 1,
    "test_lagrange2.test_lagrange_2forces": 1,
    "test_linearize.test_linearize_rolling_disc_kane": 1,
    "test_linearize.test_linearize_pendulum_kane_minimal": 1,
    "test_linearize.test_linearize_pendulum_kane_nonminimal": 1,
    "test_linearize.test_linearize_pendulum_lagrange_minimal": 1,
    "test_linearize.test_linearize_pendulum_lagrange_nonminimal": 1,
    "test_linearize.test_linearize_rolling_disc_lagrange": 1,
    "test_models.test_multi_mass_spring_damper_inputs": 4,
    "test_models.test_multi_mass_spring_damper_higher_order": 1,
    "test_models.test_n_link_pendulum_on_cart_inputs": 4,
    "test_models.test_n_link_pendulum_on_cart_higher_order": 1,
    "test_system_class.TestSystemExamples.test_cart_pendulum_kanes": 2,
    "test_system_class.TestSystemExamples.test_cart_pendulum_lagrange": 2,
    "test_system_class.TestSystemExamples.test_box_on_ground": 1,
}
"""For each test of SymPy how many systems it forms."""

SLOW = {
    "test_jointsmethod.test_four_bar_linkage_with_manual_constraints",
    "test_kane.test_implicit_kinematics",
    "test_kane.test_issue_24887",
    "test_kane3.test_bicycle",
    "test_kane5.test_kane_rolling_disc_lu",
    "test_linearize.test_linearize_rolling_disc_kane",
    "test_linearize.test_linearize_pendulum_kane_nonminimal",
}
"""More than some seconds, nearly all of them in SymPy, which derives the bicycle in ten minutes."""

ALL = [pytest.param(name, marks=pytest.mark.slow) if name in SLOW else name for name in SYSTEMS]


def prepared(name):
    """A test of SymPy as a function; one of a class with what its fixtures set."""
    module, *path = name.split(".")
    owner = importlib.import_module(f"sympy.physics.mechanics.tests.{module}")
    for part in path[:-1]:
        owner = getattr(owner, part)()
        for fixture in vars(type(owner)).values():
            if hasattr(fixture, "_get_wrapped_function"):
                fixture._get_wrapped_function()(owner)
    return getattr(owner, path[-1])


def systems_of(name, monkeypatch):
    """The methods whose equations a test of SymPy forms, in the state that the test leaves them in."""
    found = {}

    def recorded(cls, method):
        original = getattr(cls, method)

        def call(self, *args, **options):
            result = original(self, *args, **options)
            found[id(self)] = self
            return result

        monkeypatch.setattr(cls, method, call)

    recorded(me.KanesMethod, "kanes_equations")
    recorded(me.LagrangesMethod, "form_lagranges_equations")
    prepared(name)()
    monkeypatch.undo()
    return list(found.values())


class Reference:
    """A system in 60 digits, by `lambdify` with mpmath: `diff` and `subs` take minutes on the largest."""

    def __init__(self, system, states, point):
        self.function = sp.lambdify([states, system.others], [system.M, system.F], "mpmath", cse=True)
        self.states, self.others = ([point[s] for s in part] for part in (states, system.others))

    def __call__(self, place=None, step=0):
        """Mass matrix and forcing, with a step in one state."""
        with mpmath.workdps(60):
            states, others = (
                [mpmath.mpf(int(value.p)) / int(value.q) for value in part]
                for part in (self.states, self.others)
            )
            if place is not None:
                states[place] += step
            return self.function(states, others)

    def jacobian(self):
        """∂F/∂x by central differences: with steps of 1e-20 their error is 1e-40."""
        with mpmath.workdps(60):
            h = mpmath.mpf(10) ** -20
            columns = [(self(k, h)[1] - self(k, -h)[1]) / (2 * h) for k in range(len(self.states))]
        return np.column_stack([floats(column).ravel() for column in columns])


def floats(matrix):
    return np.array(matrix.tolist(), dtype=float)


@pytest.mark.thorough
@pytest.mark.parametrize("name", ALL)
def test_systems_of_sympys_tests(name, monkeypatch):
    methods = systems_of(name, monkeypatch)
    assert len(methods) == SYSTEMS[name]
    for method in methods:
        system = finished(method, list(method.q), list(method.u))
        point, states = point_of(system), [*system.q, *system.u]
        inputs = [states, system.others]
        values = [numbers(point, part) for part in inputs]
        M, F = lower((system.M, system.F), inputs=inputs)(*values)
        reference = Reference(system, states, point)
        exact_M, exact_F = map(floats, reference())
        np.testing.assert_allclose(M, exact_M, rtol=1e-10, atol=1e-11)
        np.testing.assert_allclose(np.ravel(F), exact_F.ravel(), rtol=1e-9, atol=1e-10)
        slope = lower(symad.jacobian(system.F, states, inputs=inputs))(*values)
        np.testing.assert_allclose(slope, reference.jacobian(), rtol=1e-9, atol=1e-9)


def test_no_system_is_forgotten():
    assert sum(SYSTEMS.values()) == 61
